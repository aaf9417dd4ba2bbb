package loadbalancer

import (
	"context"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// stateMasked is what systemd reports of a masked unit, in the words of systemctl show.
const stateMasked = "masked"

// masked is a unit that does not exist yet and that cannot be started when its package
// creates it.
type masked struct {
	op.NoNeeds
	unit string
}

func (m masked) String() string { return "mask of " + m.unit }

// Want masks the unit where it does not exist.
func (m masked) Want(ctx context.Context, h *steps.Host, _ bool) (*op.Change, error) {
	s, err := h.Unit(ctx, m.unit)
	if err != nil || s.Found() || s.Load == stateMasked {
		return nil, err
	}
	return &op.Change{
		What: "mask " + m.unit,
		Apply: func(ctx context.Context, h *steps.Host) error {
			if _, err := op.RememberFirst(ctx, h, m, op.Record{}); err != nil {
				return err
			}
			return h.UnitMask(ctx, m.unit)
		},
		Undo: m.unmask,
	}, nil
}

// Gone unmasks the unit where kubexm masked it.
func (m masked) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	_, recorded, err := op.ReadRecord(ctx, h, m)
	if err != nil || !recorded {
		return nil, err
	}
	return &op.Change{What: "unmask " + m.unit, Apply: m.unmask}, nil
}

func (m masked) unmask(ctx context.Context, h *steps.Host) error {
	if err := h.UnitUnmask(ctx, m.unit); err != nil {
		return err
	}
	return op.Forget(ctx, h, m)
}

// unmasked is a unit whose mask kubexm has removed again. It has nothing to restore:
// without the mask the unit is as its package created it.
type unmasked struct {
	op.NoNeeds
	unit string
}

func (u unmasked) String() string { return "no mask of " + u.unit }

// Want unmasks the unit where kubexm masked it.
func (u unmasked) Want(ctx context.Context, h *steps.Host, _ bool) (*op.Change, error) {
	return masked(u).Gone(ctx, h)
}

// Gone has the mask removed as well, after an installation that was cut off.
func (u unmasked) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	return masked(u).Gone(ctx, h)
}
