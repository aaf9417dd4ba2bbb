package node

import (
	"context"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// hostname returns the resources of the host's name in the config: in the kernel, and for
// the next boot.
func hostname(h *steps.Host) []op.Resource {
	name := h.Name
	return []op.Resource{
		Hostname{Name: name},
		op.Text("/etc/hostname", func(context.Context, *steps.Host) ([]byte, error) { return []byte(name + "\n"), nil }),
	}
}

// SetHostname sets the host's name to its name in the config. /etc/hosts must contain the
// name already: sudo resolves it, and would wait for name servers otherwise.
func SetHostname() steps.Step { return op.EnsureOn("node.update-hostname", hostname) }

// RestoreHostname restores the host's earlier name.
func RestoreHostname() steps.Step { return op.RemoveOn("node.restore-hostname", hostname) }

// Hostname is the host name in the running kernel. The file /etc/hostname sets it at boot.
type Hostname struct {
	op.NoNeeds
	Name string
}

func (Hostname) String() string { return "host name" }

// Want sets the host name.
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

// Gone restores the earlier host name.
func (n Hostname) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	e, recorded, err := op.ReadRecord(ctx, h, n)
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
