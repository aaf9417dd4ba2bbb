package op

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Sysctl is a kernel setting as it is now; that it stays after a reboot is a
// file's business, under /etc/sysctl.d.
type Sysctl struct {
	noNeeds
	Key, Value string
	// AtLeast leaves a host alone whose number is greater, and one whose kernel has
	// no such setting.
	AtLeast bool
}

// Enough tells whether a host whose setting is have needs no change.
func (s Sysctl) Enough(have string) bool {
	if sameWords(have, s.Value) {
		return true
	}
	is, err := strconv.ParseUint(strings.TrimSpace(have), 10, 64)
	if err != nil || !s.AtLeast {
		return false
	}
	want, err := strconv.ParseUint(s.Value, 10, 64)
	return err == nil && is >= want
}

func (s Sysctl) String() string { return "sysctl " + s.Key }

// Want sets the value. A key that is not there yet comes with a module that is
// loaded before.
func (s Sysctl) Want(ctx context.Context, h *steps.Host, _ bool) (*Change, error) {
	have, err := h.Sysctl(ctx, s.Key)
	absent := errors.Is(err, fs.ErrNotExist)
	if err != nil && !absent {
		return nil, err
	}
	if absent && s.AtLeast || !absent && s.Enough(have) {
		return nil, nil
	}
	what := fmt.Sprintf("set %s from %s to %s", s.Key, have, s.Value)
	if absent {
		what = fmt.Sprintf("set %s to %s", s.Key, s.Value)
	}
	first := false
	return &Change{
		What: what,
		Apply: func(ctx context.Context, h *steps.Host) error {
			if absent {
				return steps.Advise(err, "the kernel of %s has no such setting: see whether the kernel module that brings it is loaded", h.Name)
			}
			_, recorded, err := recall(ctx, h, s)
			if err != nil {
				return err
			}
			if first = !recorded; first {
				if err := remember(ctx, h, s, entry{Existed: true, Value: have}); err != nil {
					return err
				}
			}
			return h.SetSysctl(ctx, s.Key, s.Value)
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if absent {
				return nil
			}
			if err := s.back(ctx, h, have); err != nil || !first {
				return err
			}
			return forget(ctx, h, s)
		},
	}, nil
}

// Gone sets the value back that was there before.
func (s Sysctl) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	e, recorded, err := recall(ctx, h, s)
	if err != nil || !recorded {
		return nil, err
	}
	return &Change{What: fmt.Sprintf("set %s back to %s", s.Key, e.Value), Apply: func(ctx context.Context, h *steps.Host) error {
		if err := s.back(ctx, h, e.Value); err != nil {
			return err
		}
		return forget(ctx, h, s)
	}}, nil
}

// back gives the key an earlier value; one that went with its module has none.
func (s Sysctl) back(ctx context.Context, h *steps.Host, value string) error {
	if err := h.SetSysctl(ctx, s.Key, value); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
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
			_, recorded, err := recall(ctx, h, m)
			if err != nil {
				return err
			}
			if !recorded {
				if err := remember(ctx, h, m, entry{}); err != nil {
					return err
				}
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
// takes it away. That is what modprobe says itself; one that a signal ended
// said nothing.
func (m Module) unload(ctx context.Context, h *steps.Host) error {
	var cmd *runner.CmdError
	if err := h.ModuleUnload(ctx, m.Name); err != nil && (!errors.As(err, &cmd) || cmd.Exit > 128) {
		return err
	}
	return forget(ctx, h, m)
}
