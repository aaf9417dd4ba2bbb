package node

import (
	"context"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// Follower is a unit of the host's own that reads the files before it in the list
// when it starts. It reads them anew after a change of theirs, and again after
// their removal; whether it runs, and whether it starts at boot, stays its own
// matter.
type Follower struct {
	op.NoNeeds
	Name string // "systemd-resolved.service"
	// Reload has it read them in place of a restart.
	Reload bool
}

func (f Follower) String() string { return "unit " + f.Name + " with its files" }

// Want restarts the unit where something before it changed.
func (f Follower) Want(ctx context.Context, h *steps.Host, changed bool) (*op.Change, error) {
	e, _, err := op.Recall(ctx, h, f)
	if err != nil || !changed && !e.Pending {
		return nil, err
	}
	return &op.Change{
		What: "restart " + f.Name,
		Apply: func(ctx context.Context, h *steps.Host) error {
			if err := f.again(ctx, h); err != nil {
				return err
			}
			return op.Rewrite(ctx, h, f, op.Record{Existed: true})
		},
	}, nil
}

// Gone has nothing to do: see Settle.
func (f Follower) Gone(context.Context, *steps.Host) (*op.Change, error) { return nil, nil }

// Expect notes that the unit is to be restarted, whatever cuts the run off.
func (f Follower) Expect(ctx context.Context, h *steps.Host) (*op.Change, error) {
	e, recorded, err := op.Recall(ctx, h, f)
	if err != nil {
		return nil, err
	}
	return &op.Change{
		What: "note that " + f.Name + " is to be restarted",
		Apply: func(ctx context.Context, h *steps.Host) error {
			return op.Remember(ctx, h, f, op.Record{Existed: true, Pending: true})
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if err := f.again(ctx, h); err != nil {
				return err
			}
			if !recorded {
				return op.Forget(ctx, h, f)
			}
			return op.Rewrite(ctx, h, f, e)
		},
	}, nil
}

// Settle has the unit read its files once more after they are gone.
func (f Follower) Settle(ctx context.Context, h *steps.Host) (*op.Change, error) {
	_, recorded, err := op.Recall(ctx, h, f)
	if err != nil || !recorded {
		return nil, err
	}
	return &op.Change{What: "restart " + f.Name, Apply: func(ctx context.Context, h *steps.Host) error {
		if err := f.again(ctx, h); err != nil {
			return err
		}
		return op.Forget(ctx, h, f)
	}}, nil
}

// again restarts the unit where it runs.
func (f Follower) again(ctx context.Context, h *steps.Host) error {
	s, err := h.Unit(ctx, f.Name)
	if err != nil || !s.IsActive() {
		return err
	}
	if f.Reload {
		err = h.UnitReload(ctx, f.Name)
	} else {
		err = h.UnitRestart(ctx, f.Name)
	}
	return steps.Advise(err, "see `journalctl -u %s` on %s", f.Name, h.Name)
}
