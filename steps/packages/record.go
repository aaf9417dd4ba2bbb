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

// brought is the record of an installation of packages. All lists contain IDs.
type brought struct {
	Format string `json:"format"`
	// Came are the packages that kubexm installed and that did not exist before.
	Came []string `json:"came,omitempty"`
	// May are the packages that an unfinished installation may have installed.
	May []string `json:"may,omitempty"`
	// Kept are the packages of both lists whose configuration files existed before.
	Kept []string `json:"kept,omitempty"`
}

// all returns the packages to remove.
func (b brought) all() []string {
	ids := slices.Concat(b.Came, b.May)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// entry is a record with its packages.
type entry struct {
	op.Record
	Packages *brought // nil if the record contains none
}

func recall(ctx context.Context, h *steps.Host, p Installed) (e entry, ok bool, err error) {
	if e.Record, ok, err = op.ReadRecord(ctx, h, p); err != nil || len(e.Detail) == 0 {
		return e, ok, err
	}
	if err := json.Unmarshal(e.Detail, &e.Packages); err != nil {
		return e, ok, fmt.Errorf("record of %s: %w", p, err)
	}
	return e, ok, nil
}

// record returns the entry as an op.Record.
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

// announce records which packages may be installed: those of the repository that the host
// does not have.
func (p Installed) announce(ctx context.Context, w *work, before runner.Packages) (entry, error) {
	e, recorded, err := recall(ctx, w.h, p)
	if err != nil {
		return e, err
	}
	b := brought{Format: w.format()}
	if e.Packages != nil {
		b = *e.Packages
	}
	for _, ids := range w.available() {
		for _, id := range ids {
			x, exists := before.Find(id)
			if exists && x.State != runner.StateConfig || slices.Contains(b.May, id) {
				continue
			}
			b.May = append(b.May, id)
			if exists && !slices.Contains(b.Kept, id) && !slices.Contains(b.Came, id) {
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

// report logs which existing packages were replaced or upgraded.
func (w *work) report(ctx context.Context, before, now runner.Packages) {
	for _, old := range before.All {
		x, exists := now.Find(old.ID)
		switch {
		case old.State == runner.StateConfig:
		case !exists:
			w.h.Log.WarnContext(ctx, "another package replaced an installed one", "package", old.ID)
		case x.Version != old.Version:
			w.h.Log.InfoContext(ctx, "an installed package was upgraded", "package", old.ID, "from", old.Version, "to", x.Version)
		}
	}
}
