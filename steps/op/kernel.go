package op

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Sysctl is a kernel setting as it is now; that it stays after a reboot is a
// file's business, under /etc/sysctl.d.
type Sysctl struct {
	noNeeds
	Key, Value string
}

func (s Sysctl) String() string { return "sysctl " + s.Key }

// Want sets the value.
func (s Sysctl) Want(ctx context.Context, h *steps.Host, _ bool) (*Change, error) {
	have, err := h.Sysctl(ctx, s.Key)
	if err != nil {
		return nil, err
	}
	if sameWords(have, s.Value) {
		return nil, nil
	}
	return &Change{
		What: fmt.Sprintf("set %s from %s to %s", s.Key, have, s.Value),
		Apply: func(ctx context.Context, h *steps.Host) error {
			if err := remember(ctx, h, s, entry{Existed: true, Value: have}); err != nil {
				return err
			}
			return h.SetSysctl(ctx, s.Key, s.Value)
		},
		Undo: func(ctx context.Context, h *steps.Host) error { return h.SetSysctl(ctx, s.Key, have) },
	}, nil
}

// Gone sets the value back that was there before.
func (s Sysctl) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	e, recorded, err := recall(ctx, h, s)
	if err != nil || !recorded {
		return nil, err
	}
	return &Change{What: fmt.Sprintf("set %s back to %s", s.Key, e.Value), Apply: func(ctx context.Context, h *steps.Host) error {
		return errors.Join(h.SetSysctl(ctx, s.Key, e.Value), forget(ctx, h, s))
	}}, nil
}

func sameWords(a, b string) bool {
	return strings.Join(strings.Fields(a), " ") == strings.Join(strings.Fields(b), " ")
}

// Module is a kernel module that is loaded, or part of the kernel.
type Module struct {
	noNeeds
	Name string
	// Optional lets a host go without it.
	Optional bool
}

func (m Module) String() string { return "kernel module " + m.Name }

// Want loads the module.
func (m Module) Want(ctx context.Context, h *steps.Host, _ bool) (*Change, error) {
	s, err := h.Module(ctx, m.Name)
	if err != nil || s.Ready() {
		return nil, err
	}
	if s == runner.ModuleAbsent && m.Optional {
		return nil, nil
	}
	return &Change{
		What: "load kernel module " + m.Name,
		Apply: func(ctx context.Context, h *steps.Host) error {
			if err := remember(ctx, h, m, entry{}); err != nil {
				return err
			}
			return steps.Advise(h.Modprobe(ctx, m.Name), "install the package with the modules of this kernel on %s", h.Name)
		},
		Undo: func(ctx context.Context, h *steps.Host) error { return m.unload(ctx, h) },
	}, nil
}

// Gone unloads the module where kubexm loaded it.
func (m Module) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	_, recorded, err := recall(ctx, h, m)
	if err != nil || !recorded {
		return nil, err
	}
	return &Change{What: "unload kernel module " + m.Name, Apply: func(ctx context.Context, h *steps.Host) error {
		return m.unload(ctx, h)
	}}, nil
}

// unload tries: a module that something else uses by now stays, and a reboot
// takes it away.
func (m Module) unload(ctx context.Context, h *steps.Host) error {
	var cmd *runner.CmdError
	if err := h.ModuleUnload(ctx, m.Name); err != nil && !errors.As(err, &cmd) {
		return err
	}
	return forget(ctx, h, m)
}
