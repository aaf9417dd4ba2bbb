package op

import (
	"context"
	"slices"

	"github.com/mensylisir/kubexm/steps/runner"
)

// Brought is what an installation of packages leaves on record. All are IDs.
type Brought struct {
	Format string `json:"format"`
	// Came are those that kubexm brought and that were not there before.
	Came []string `json:"came,omitempty"`
	// May are those that an installation which has not ended well may have brought.
	May []string `json:"may,omitempty"`
	// Kept are those of both whose configuration was there before.
	Kept []string `json:"kept,omitempty"`
}

// all gives what there is to be removed.
func (b Brought) all() []string {
	ids := slices.Concat(b.Came, b.May)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// announce writes down which packages may come: those that the repository has
// and the host has not.
func (p Packages) announce(ctx context.Context, w *work, before runner.Packages) (Record, error) {
	e, recorded, err := Recall(ctx, w.h, p)
	if err != nil {
		return e, err
	}
	b := Brought{Format: w.format()}
	if e.Packages != nil {
		b = *e.Packages
	}
	for _, ids := range w.offers() {
		for _, id := range ids {
			x, there := before.Find(id)
			if there && x.State != runner.StateConfig || slices.Contains(b.May, id) {
				continue
			}
			b.May = append(b.May, id)
			if there && !slices.Contains(b.Kept, id) && !slices.Contains(b.Came, id) {
				b.Kept = append(b.Kept, id)
			}
		}
	}
	slices.Sort(b.May)
	slices.Sort(b.Kept)
	e.Packages, e.Pending = &b, true
	if recorded {
		return e, Rewrite(ctx, w.h, p, e)
	}
	return e, Remember(ctx, w.h, p, e)
}

// report says which packages that were there are others now.
func (w *work) report(ctx context.Context, before, now runner.Packages) {
	for _, old := range before.All {
		x, there := now.Find(old.ID)
		switch {
		case old.State == runner.StateConfig:
		case !there:
			w.h.Log.WarnContext(ctx, "a package is gone: another one came in its place", "package", old.ID)
		case x.Version != old.Version:
			w.h.Log.InfoContext(ctx, "a package that was there is a newer one now", "package", old.ID, "from", old.Version, "to", x.Version)
		}
	}
}
