package node

import (
	"context"
	"errors"
	"io/fs"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// NoUFW is the disabled firewall ufw. It is disabled with the command ufw: the unit only runs
// that command, and may be enabled while the firewall is not.
type NoUFW struct{ op.NoNeeds }

func (NoUFW) String() string { return "firewall ufw off" }

// Want disables ufw, immediately and at boot.
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

// Gone enables ufw again if it is still installed.
func (u NoUFW) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	_, recorded, err := op.ReadRecord(ctx, h, u)
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
