package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// Sysctl is a kernel setting as it is now; that it stays after a reboot is a
// file's business, under /etc/sysctl.d.
type Sysctl struct {
	op.NoNeeds
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
func (s Sysctl) Want(ctx context.Context, h *steps.Host, _ bool) (*op.Change, error) {
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
	return &op.Change{
		What: what,
		Apply: func(ctx context.Context, h *steps.Host) error {
			if absent {
				return steps.Advise(err, "the kernel of %s has no such setting: see whether the kernel module that brings it is loaded", h.Name)
			}
			var err error
			if first, err = op.RememberFirst(ctx, h, s, op.Record{Existed: true, Value: have}); err != nil {
				return err
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
			return op.Forget(ctx, h, s)
		},
	}, nil
}

// Gone sets the value back that was there before.
func (s Sysctl) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	e, recorded, err := op.Recall(ctx, h, s)
	if err != nil || !recorded {
		return nil, err
	}
	return &op.Change{What: fmt.Sprintf("set %s back to %s", s.Key, e.Value), Apply: func(ctx context.Context, h *steps.Host) error {
		if err := s.back(ctx, h, e.Value); err != nil {
			return err
		}
		return op.Forget(ctx, h, s)
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
