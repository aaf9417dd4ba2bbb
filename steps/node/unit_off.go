package node

import (
	"context"
	"strings"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Off is a systemd unit that is stopped and disabled. A host without the unit, or on which
// it is off, is not changed. A removal restores its earlier state.
type Off struct {
	op.NoNeeds
	Name string // "firewalld.service"
}

func (o Off) String() string { return "unit " + o.Name + " off" }

// Want stops and disables the unit.
func (o Off) Want(ctx context.Context, h *steps.Host, _ bool) (*op.Change, error) {
	s, err := h.Unit(ctx, o.Name)
	if err != nil || !s.Found() || !s.IsEnabled() && !running(s) {
		return nil, err
	}
	var first bool
	now := s.Words()
	return &op.Change{
		What: "stop and disable " + o.Name,
		Apply: func(ctx context.Context, h *steps.Host) error {
			var err error
			if first, err = op.RememberFirst(ctx, h, o, op.Record{Existed: true, Value: now}); err != nil {
				return err
			}
			if running(s) {
				if err := h.UnitStop(ctx, o.Name); err != nil {
					return err
				}
			}
			if !s.IsEnabled() {
				return nil
			}
			return h.UnitDisable(ctx, o.Name)
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if err := o.back(ctx, h, now); err != nil || !first {
				return err
			}
			return op.Forget(ctx, h, o)
		},
	}, nil
}

// running reports whether a unit runs or is starting. A failed one does not.
func running(s runner.Unit) bool {
	return s.Active == "active" || s.Active == "activating" || s.Active == "reloading"
}

// Gone restores the unit's earlier state.
func (o Off) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	e, recorded, err := op.ReadRecord(ctx, h, o)
	if err != nil || !recorded {
		return nil, err
	}
	return &op.Change{What: "make " + o.Name + " " + e.Value + " again", Apply: func(ctx context.Context, h *steps.Host) error {
		if err := o.back(ctx, h, e.Value); err != nil {
			return err
		}
		return op.Forget(ctx, h, o)
	}}, nil
}

// back restores a state, in the form of runner.Unit.Words, if the unit still exists.
func (o Off) back(ctx context.Context, h *steps.Host, words string) error {
	s, err := h.Unit(ctx, o.Name)
	if err != nil || !s.Found() {
		return err
	}
	if strings.HasPrefix(words, "enabled") && !s.IsEnabled() {
		if err := h.UnitEnable(ctx, o.Name); err != nil {
			return err
		}
	}
	if !strings.HasSuffix(words, " active") || s.IsActive() {
		return nil
	}
	err = h.UnitStart(ctx, o.Name)
	if runner.Refused(err) {
		return steps.Advise(err, "run journalctl -u %s on %s, and repeat the command", o.Name, h.Name)
	}
	return err
}
