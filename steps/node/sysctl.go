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

// Sysctl is a kernel setting in the running kernel. A file in /etc/sysctl.d sets it at boot.
type Sysctl struct {
	op.NoNeeds
	Key, Value string
	// AtLeast makes Value a minimum, and skips a kernel without the setting.
	AtLeast bool
}

// Enough reports whether the value have needs no change.
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

// Want sets the value. A key that does not exist yet appears with a module that is loaded
// before it.
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
				return steps.Advise(err, "the kernel of %s has no such setting: check that the kernel module that provides it is loaded", h.Name)
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

// Gone restores the earlier value.
func (s Sysctl) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	e, recorded, err := op.ReadRecord(ctx, h, s)
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

// back restores an earlier value; a key that disappeared with its module is skipped.
func (s Sysctl) back(ctx context.Context, h *steps.Host, value string) error {
	if err := h.SetSysctl(ctx, s.Key, value); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func sameWords(a, b string) bool {
	return strings.Join(strings.Fields(a), " ") == strings.Join(strings.Fields(b), " ")
}
