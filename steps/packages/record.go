package packages

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// brought is what an installation of packages leaves on record. All are IDs.
type brought struct {
	Format string `json:"format"`
	// Came are those that kubexm brought and that were not there before.
	Came []string `json:"came,omitempty"`
	// May are those that an installation which has not ended well may have brought.
	May []string `json:"may,omitempty"`
	// Kept are those of both whose configuration was there before.
	Kept []string `json:"kept,omitempty"`
}

// all gives what there is to be removed.
func (b brought) all() []string {
	ids := slices.Concat(b.Came, b.May)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// entry is a record with what the installation brought.
type entry struct {
	op.Record
	Packages *brought // nil where nothing is known of them
}

func recall(ctx context.Context, h *steps.Host, p Installed) (e entry, ok bool, err error) {
	if e.Record, ok, err = op.Recall(ctx, h, p); err != nil || len(e.Detail) == 0 {
		return e, ok, err
	}
	if err := json.Unmarshal(e.Detail, &e.Packages); err != nil {
		return e, ok, fmt.Errorf("record of %s: %w", p, err)
	}
	return e, ok, nil
}

// record gives the record that holds an entry.
func (e entry) record() (op.Record, error) {
	r := e.Record
	r.Detail = nil
	if e.Packages == nil {
		return r, nil
	}
	var err error
	r.Detail, err = json.Marshal(e.Packages)
	return r, err
}

func remember(ctx context.Context, h *steps.Host, p Installed, e entry) error {
	r, err := e.record()
	if err != nil {
		return err
	}
	return op.Remember(ctx, h, p, r)
}

func rewrite(ctx context.Context, h *steps.Host, p Installed, e entry) error {
	r, err := e.record()
	if err != nil {
		return err
	}
	return op.Rewrite(ctx, h, p, r)
}

// announce writes down which packages may come: those that the repository has
// and the host has not.
func (p Installed) announce(ctx context.Context, w *work, before runner.Packages) (entry, error) {
	e, recorded, err := recall(ctx, w.h, p)
	if err != nil {
		return e, err
	}
	b := brought{Format: w.format()}
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
		return e, rewrite(ctx, w.h, p, e)
	}
	return e, remember(ctx, w.h, p, e)
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
