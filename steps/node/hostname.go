package node

import (
	"context"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// hostname is the name in the config: now, and after a boot.
func hostname(h *steps.Host) []op.Resource {
	name := h.Name
	return []op.Resource{
		Hostname{Name: name},
		op.Text("/etc/hostname", func(context.Context, *steps.Host) ([]byte, error) { return []byte(name + "\n"), nil }),
	}
}

// SetHostname gives the host the name that it has in the config. The name is in
// /etc/hosts by then: sudo looks it up, and waits for name servers otherwise.
func SetHostname() steps.Step { return op.EnsureOn("node.update-hostname", hostname) }

// RestoreHostname is its inverse.
func RestoreHostname() steps.Step { return op.RemoveOn("node.restore-hostname", hostname) }

// Hostname is the name that the kernel has for the host now; that it stays after a
// boot is the business of the file /etc/hostname.
type Hostname struct {
	op.NoNeeds
	Name string
}

func (Hostname) String() string { return "host name" }

// Want renames the host.
func (n Hostname) Want(ctx context.Context, h *steps.Host, _ bool) (*op.Change, error) {
	have, err := h.Hostname(ctx)
	if err != nil || have == n.Name {
		return nil, err
	}
	first := false
	return &op.Change{
		What: "rename the host from " + have + " to " + n.Name,
		Apply: func(ctx context.Context, h *steps.Host) error {
			var err error
			if first, err = op.RememberFirst(ctx, h, n, op.Record{Existed: true, Value: have}); err != nil {
				return err
			}
			return h.SetHostname(ctx, n.Name)
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if err := h.SetHostname(ctx, have); err != nil || !first {
				return err
			}
			return op.Forget(ctx, h, n)
		},
	}, nil
}

// Gone gives the host its earlier name.
func (n Hostname) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	e, recorded, err := op.Recall(ctx, h, n)
	if err != nil || !recorded {
		return nil, err
	}
	return &op.Change{What: "rename the host back to " + e.Value, Apply: func(ctx context.Context, h *steps.Host) error {
		if err := h.SetHostname(ctx, e.Value); err != nil {
			return err
		}
		return op.Forget(ctx, h, n)
	}}, nil
}
