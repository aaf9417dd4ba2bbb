package node

import (
	"context"
	"errors"
	"io/fs"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// NoUFW is the firewall ufw switched off, with its own command: its unit only runs
// that, and a host may have the unit on and the firewall off.
type NoUFW struct{ op.NoNeeds }

func (NoUFW) String() string { return "firewall ufw off" }

// Want switches it off, now and for later boots.
func (u NoUFW) Want(ctx context.Context, h *steps.Host, _ bool) (*op.Change, error) {
	on, err := h.UFW(ctx)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !on {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	first := false
	return &op.Change{
		What: "switch ufw off",
		Apply: func(ctx context.Context, h *steps.Host) error {
			var err error
			if first, err = op.RememberFirst(ctx, h, u, op.Record{Existed: true, Value: "active"}); err != nil {
				return err
			}
			return h.SetUFW(ctx, false)
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if err := h.SetUFW(ctx, true); err != nil || !first {
				return err
			}
			return op.Forget(ctx, h, u)
		},
	}, nil
}

// Gone switches it on again, where it is there still.
func (u NoUFW) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	_, recorded, err := op.Recall(ctx, h, u)
	if err != nil || !recorded {
		return nil, err
	}
	return &op.Change{What: "switch ufw on again", Apply: func(ctx context.Context, h *steps.Host) error {
		_, err := h.UFW(ctx)
		if err == nil {
			err = h.SetUFW(ctx, true)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return op.Forget(ctx, h, u)
	}}, nil
}
