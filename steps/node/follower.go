package node

import (
	"context"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// Follower is an existing unit of the host that reads, at its start, the files before it in
// the resource list. It is restarted or reloaded after they change and after they are
// removed. Whether it runs, and whether it starts at boot, is not changed.
type Follower struct {
	op.NoNeeds
	Name string // "systemd-resolved.service"
	// Reload reloads the unit instead of restarting it.
	Reload bool
	// Of is what the files are about, if several steps have files of the unit.
	Of string
}

func (f Follower) String() string {
	if f.Of != "" {
		return "unit " + f.Name + " with its files about " + f.Of
	}
	return "unit " + f.Name + " with its files"
}

// Want restarts the unit if a file before it changed.
func (f Follower) Want(ctx context.Context, h *steps.Host, changed bool) (*op.Change, error) {
	e, _, err := op.ReadRecord(ctx, h, f)
	if err != nil || !changed && !e.Pending {
		return nil, err
	}
	return &op.Change{
		What: "restart " + f.Name,
		Apply: func(ctx context.Context, h *steps.Host) error {
			if err := f.restart(ctx, h); err != nil {
				return err
			}
			return op.Rewrite(ctx, h, f, op.Record{Existed: true})
		},
	}, nil
}

// Gone returns nil: see Settle.
func (f Follower) Gone(context.Context, *steps.Host) (*op.Change, error) { return nil, nil }

// Expect records that the unit must be restarted, so that an interrupted run is completed by
// the next one.
func (f Follower) Expect(ctx context.Context, h *steps.Host) (*op.Change, error) {
	e, recorded, err := op.ReadRecord(ctx, h, f)
	if err != nil {
		return nil, err
	}
	return &op.Change{
		What: "note that " + f.Name + " is to be restarted",
		Apply: func(ctx context.Context, h *steps.Host) error {
			return op.Remember(ctx, h, f, op.Record{Existed: true, Pending: true})
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if err := f.restart(ctx, h); err != nil {
				return err
			}
			if !recorded {
				return op.Forget(ctx, h, f)
			}
			return op.Rewrite(ctx, h, f, e)
		},
	}, nil
}

// Settle restarts the unit once its files are removed.
func (f Follower) Settle(ctx context.Context, h *steps.Host) (*op.Change, error) {
	_, recorded, err := op.ReadRecord(ctx, h, f)
	if err != nil || !recorded {
		return nil, err
	}
	return &op.Change{What: "restart " + f.Name, Apply: func(ctx context.Context, h *steps.Host) error {
		if err := f.restart(ctx, h); err != nil {
			return err
		}
		return op.Forget(ctx, h, f)
	}}, nil
}

// restart restarts or reloads the unit if it runs.
func (f Follower) restart(ctx context.Context, h *steps.Host) error {
	s, err := h.Unit(ctx, f.Name)
	if err != nil || !s.IsActive() {
		return err
	}
	if f.Reload {
		err = h.UnitReload(ctx, f.Name)
	} else {
		err = h.UnitRestart(ctx, f.Name)
	}
	return steps.Advise(err, "run journalctl -u %s on %s", f.Name, h.Name)
}
