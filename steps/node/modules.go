package node

import (
	"context"
	"errors"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Modules returns the kernel modules that the nodes of a cluster need.
func Modules(c *manifest.Cluster) []string { return modules(c) }

// Module is a kernel module that is loaded or built in.
type Module struct {
	op.NoNeeds
	Name string
	// Optional accepts a host without the module.
	Optional bool
}

func (m Module) String() string { return "kernel module " + m.Name }

// Want loads the module.
func (m Module) Want(ctx context.Context, h *steps.Host, _ bool) (*op.Change, error) {
	s, err := h.Module(ctx, m.Name)
	if err != nil || s.Ready() {
		return nil, err
	}
	if s == runner.ModuleAbsent && m.Optional {
		return nil, nil
	}
	return &op.Change{
		What: "load kernel module " + m.Name,
		Apply: func(ctx context.Context, h *steps.Host) error {
			if _, err := op.RememberFirst(ctx, h, m, op.Record{}); err != nil {
				return err
			}
			return steps.Advise(h.Modprobe(ctx, m.Name), "install the package with the modules of the running kernel on %s", h.Name)
		},
		Undo: func(ctx context.Context, h *steps.Host) error { return m.unload(ctx, h) },
	}, nil
}

// Gone unloads the module if kubexm loaded it.
func (m Module) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	_, recorded, err := op.ReadRecord(ctx, h, m)
	if err != nil || !recorded {
		return nil, err
	}
	return &op.Change{What: "unload kernel module " + m.Name, Apply: func(ctx context.Context, h *steps.Host) error {
		return m.unload(ctx, h)
	}}, nil
}

// unload tries to unload the module. If modprobe fails because the module is in use, it
// remains until a reboot. It is an error if a signal ended modprobe.
func (m Module) unload(ctx context.Context, h *steps.Host) error {
	var cmd *runner.CmdError
	if err := h.ModuleUnload(ctx, m.Name); err != nil && (!errors.As(err, &cmd) || cmd.Exit > 128) {
		return err
	}
	return op.Forget(ctx, h, m)
}
