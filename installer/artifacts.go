package installer

import (
	"context"
	"io"
	"slices"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/manifest"
)

// artifacts provides steps with the bundle's artifacts of the lock sets that a plan uses.
type artifacts struct {
	bundle *bundle.Bundle
	set    string            // for needs without a set
	sets   func() []string   // sets that the plan uses; nil without a plan
	home   map[string]string // blob → the repository in the site's registry that it is read from
}

func (a artifacts) need(n manifest.Need) manifest.Need {
	if n.Set == "" {
		n.Set = a.set
	}
	return n
}

func (a artifacts) Lookup(n manifest.Need, p manifest.Platform) (manifest.Blob, error) {
	return a.bundle.Lock.File(a.need(n), p)
}

func (a artifacts) File(_ context.Context, n manifest.Need, p manifest.Platform) (io.ReadCloser, manifest.Blob, error) {
	b, err := a.Lookup(n, p)
	if err != nil {
		return nil, b, err
	}
	rc, _, err := a.bundle.Blob("sha256:" + b.SHA256)
	return rc, b, err
}

func (a artifacts) Repository(n manifest.Need, p manifest.Platform) (manifest.Artifact, error) {
	return a.bundle.Lock.Repository(a.need(n), p)
}

func (a artifacts) Image(n manifest.Need) (manifest.ImagePin, error) {
	return a.bundle.Lock.Image(a.need(n))
}

func (a artifacts) Images() []manifest.ImagePin {
	sets := []string{a.set}
	if a.sets != nil {
		sets = append(sets, a.sets()...)
	}
	return imagesOf(a.bundle.Lock, sets...)
}

// imagesOf returns the images of some sets of a lock.
func imagesOf(l *manifest.Lock, sets ...string) []manifest.ImagePin {
	var out []manifest.ImagePin
	for _, im := range l.Images {
		if slices.ContainsFunc(im.Sets, func(set string) bool { return slices.Contains(sets, set) }) {
			out = append(out, im)
		}
	}
	return out
}

func (a artifacts) Blob(digest string) (io.ReadCloser, int64, error) { return a.bundle.Blob(digest) }

// MountRepository implements registry.MountSource.
func (a artifacts) MountRepository(digest string) string { return a.home[digest] }

func (a artifacts) Tree(im manifest.ImagePin) ([]v1.Descriptor, error) { return a.bundle.Tree(im) }
