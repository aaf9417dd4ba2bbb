package installer

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// ErrNoBundle reports that a check requires the content of a bundle, and that there is no
// bundle.
var ErrNoBundle = errors.New("not checked without the bundle that was applied")

// absentArtifacts represents a bundle that is not available: its lock provides versions and
// digests, but not the content.
type absentArtifacts struct {
	lock *manifest.Lock // nil: unknown as well
	set  string
	list *atomic.Bool // set when the images were requested without a lock
}

// WithoutBundle returns artifacts for a bundle of which only the lock is available; l is nil
// if the lock is missing too. set is the set of the lock that the cluster has.
func WithoutBundle(l *manifest.Lock, set string) steps.Artifacts {
	return (&absentArtifacts{lock: l, set: set}).fresh()
}

// fresh returns a copy for another check.
func (a *absentArtifacts) fresh() *absentArtifacts {
	return &absentArtifacts{lock: a.lock, set: a.set, list: &atomic.Bool{}}
}

// asked reports whether the list of images was requested although it is unknown.
func (a *absentArtifacts) asked() bool { return a.list.Load() }

func (a *absentArtifacts) need(n manifest.Need) manifest.Need {
	return artifacts{set: a.set}.need(n)
}

func (a *absentArtifacts) Lookup(n manifest.Need, p manifest.Platform) (manifest.Blob, error) {
	if a.lock == nil {
		return manifest.Blob{}, ErrNoBundle
	}
	return a.lock.File(a.need(n), p)
}

func (a *absentArtifacts) File(context.Context, manifest.Need, manifest.Platform) (io.ReadCloser, manifest.Blob, error) {
	return nil, manifest.Blob{}, ErrNoBundle
}

func (a *absentArtifacts) Repository(n manifest.Need, p manifest.Platform) (manifest.Artifact, error) {
	if a.lock == nil {
		return manifest.Artifact{}, ErrNoBundle
	}
	return a.lock.Repository(a.need(n), p)
}

func (a *absentArtifacts) Image(n manifest.Need) (manifest.ImagePin, error) {
	if a.lock == nil {
		return manifest.ImagePin{}, ErrNoBundle
	}
	return a.lock.Image(a.need(n))
}

func (a *absentArtifacts) Images() []manifest.ImagePin {
	if a.lock == nil {
		a.list.Store(true)
		return nil
	}
	return imagesOf(a.lock, a.set)
}

func (a *absentArtifacts) Blob(string) (io.ReadCloser, int64, error) { return nil, 0, ErrNoBundle }

func (a *absentArtifacts) Tree(manifest.ImagePin) ([]v1.Descriptor, error) {
	return nil, ErrNoBundle
}
