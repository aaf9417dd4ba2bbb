package op

import (
	"context"

	"github.com/mensylisir/kubexm/steps"
)

// Hostname is the name that the kernel has for the host now; that it stays after a
// boot is the business of the file /etc/hostname.
type Hostname struct {
	noNeeds
	Name string
}

func (Hostname) String() string { return "host name" }

// Want renames the host.
func (n Hostname) Want(ctx context.Context, h *steps.Host, _ bool) (*Change, error) {
	have, err := h.Hostname(ctx)
	if err != nil || have == n.Name {
		return nil, err
	}
	first := false
	return &Change{
		What: "rename the host from " + have + " to " + n.Name,
		Apply: func(ctx context.Context, h *steps.Host) error {
			_, recorded, err := recall(ctx, h, n)
			if err != nil {
				return err
			}
			if first = !recorded; first {
				if err := remember(ctx, h, n, entry{Existed: true, Value: have}); err != nil {
					return err
				}
			}
			return h.SetHostname(ctx, n.Name)
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if err := h.SetHostname(ctx, have); err != nil || !first {
				return err
			}
			return forget(ctx, h, n)
		},
	}, nil
}

// Gone gives the host its earlier name.
func (n Hostname) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	e, recorded, err := recall(ctx, h, n)
	if err != nil || !recorded {
		return nil, err
	}
	return &Change{What: "rename the host back to " + e.Value, Apply: func(ctx context.Context, h *steps.Host) error {
		if err := h.SetHostname(ctx, e.Value); err != nil {
			return err
		}
		return forget(ctx, h, n)
	}}, nil
}
