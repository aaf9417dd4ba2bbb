package bundle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/manifest"
)

// Pinner queries upstream for the digests and sizes that a resolved lock lacks.
// *fetch.Client implements it.
type Pinner interface {
	PinArtifact(ctx context.Context, a manifest.Artifact) (manifest.Artifact, error)
	PinImage(ctx context.Context, im manifest.ImagePin, platforms []manifest.Platform) (manifest.ImagePin, error)
}

// PinOptions are the options of Pin.
type PinOptions struct {
	Parallel int       // artifacts pinned at the same time; at least 1
	Now      time.Time // the lock's Created and, as a number, Serial
	Previous int64     // the previous serial, which the new one must exceed, or 0
}

// Pin returns l with every artifact and image pinned. It does not query those that are
// already pinned (see Adopt). It tries all before it fails, and returns all errors joined.
func Pin(ctx context.Context, p Pinner, l *manifest.Lock, o PinOptions) (*manifest.Lock, error) {
	out := *l
	out.Artifacts = make([]manifest.Artifact, len(l.Artifacts))
	out.Images = make([]manifest.ImagePin, len(l.Images))
	var mu sync.Mutex
	var failures []error
	fail := func(id string, err error) {
		mu.Lock()
		defer mu.Unlock()
		failures = append(failures, fmt.Errorf("pin %w", named(id, err)))
	}
	var g errgroup.Group
	g.SetLimit(max(o.Parallel, 1))
	for i, a := range l.Artifacts {
		if out.Artifacts[i] = a; pinnedArtifact(a) {
			continue
		}
		g.Go(func() error {
			pinned, err := p.PinArtifact(ctx, a)
			if err != nil {
				fail(a.ID, err)
				return nil
			}
			out.Artifacts[i] = pinned
			return nil
		})
	}
	for i, im := range l.Images {
		if out.Images[i] = im; pinnedImage(im) {
			continue
		}
		g.Go(func() error {
			pinned, err := p.PinImage(ctx, im, l.Platforms)
			if err != nil {
				fail(im.ID, err)
				return nil
			}
			out.Images[i] = pinned
			return nil
		})
	}
	_ = g.Wait() // the functions above record their errors
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(failures) > 0 {
		return nil, errors.Join(failures...)
	}
	out.Created = o.Now.UTC().Truncate(time.Second)
	out.Serial = max(serialOf(out.Created), o.Previous+1)
	out.Sort()
	return &out, nil
}

// pinnedArtifact reports whether a is completely pinned.
func pinnedArtifact(a manifest.Artifact) bool {
	if a.Kind == manifest.Packages {
		return len(a.Members) > 0
	}
	if a.SHA256 == "" || a.Size == 0 || a.Kind == manifest.Chart && a.Chart == nil {
		return false
	}
	for _, m := range a.Members {
		if m.SHA256 == "" {
			return false
		}
	}
	return true
}

func pinnedImage(im manifest.ImagePin) bool {
	return im.Digest != "" && im.Size > 0 && len(im.Platforms) > 0
}

// serialOf returns a time as the number yyyymmddhhmmss, which increases with time and is
// readable.
func serialOf(t time.Time) int64 {
	var n int64
	if _, err := fmt.Sscanf(t.UTC().Format("20060102150405"), "%d", &n); err != nil {
		return 0
	}
	return n
}
