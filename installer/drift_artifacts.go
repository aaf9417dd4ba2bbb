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

// ErrNoBundle says that a look needs what a bundle holds, and that there is none.
var ErrNoBundle = errors.New("not looked at without the bundle that was applied")

// absentArtifacts stands in for a bundle that is not there, as far as its lock goes: that
// names versions and digests, and not the bytes.
type absentArtifacts struct {
	lock *manifest.Lock // nil: it is not known either
	set  string
	list *atomic.Bool // the images were asked for, and are not known
}

// WithoutBundle stands in for a bundle of which a lock alone is here; nil where that is
// not here either. set is the set of the lock that the cluster has.
func WithoutBundle(l *manifest.Lock, set string) steps.Artifacts {
	return (&absentArtifacts{lock: l, set: set}).fresh()
}

// fresh is the same for another look.
func (a *absentArtifacts) fresh() *absentArtifacts {
	return &absentArtifacts{lock: a.lock, set: a.set, list: &atomic.Bool{}}
}

// asked tells whether something was asked for that only looks like an answer.
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
