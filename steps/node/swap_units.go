package node

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// NoSwapUnits masks or disables systemd's swap units: those written by hand, and those of
// generators for zram or for swap partitions.
type NoSwapUnits struct{ op.NoNeeds }

func (NoSwapUnits) String() string { return "swap units masked" }

// A unit file in /etc cannot be masked, because the mask would replace it: it is disabled.
const ownUnits = "/etc/systemd/system/"

// Want masks the units that have a file and are not masked. Units generated from /etc/fstab
// no longer exist by then, because their lines are commented out.
func (n NoSwapUnits) Want(ctx context.Context, h *steps.Host, _ bool) (*op.Change, error) {
	_, names, err := h.Swaps(ctx)
	if err != nil {
		return nil, err
	}
	var mask, disable []string
	for _, name := range names {
		s, err := h.Unit(ctx, name)
		if err != nil {
			return nil, err
		}
		switch {
		case s.Load == "masked" || s.Path == "":
		case !strings.HasPrefix(s.Path, ownUnits):
			mask = append(mask, name)
		case s.IsEnabled():
			disable = append(disable, name)
		}
	}
	if len(mask)+len(disable) == 0 {
		return nil, nil
	}
	var before op.Record
	var begun, recorded bool
	now := swapUnits{Masked: mask, Disabled: disable}
	return &op.Change{
		What: "keep from starting: " + strings.Join(slices.Concat(mask, disable), ", "),
		Apply: func(ctx context.Context, h *steps.Host) error {
			var err error
			if before, recorded, err = op.ReadRecord(ctx, h, n); err != nil {
				return err
			}
			begun = true
			if err := n.note(ctx, h, before, now); err != nil {
				return err
			}
			return now.each(ctx, h, h.UnitMask, h.UnitDisable)
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if !begun {
				return nil
			}
			if err := now.each(ctx, h, h.UnitUnmask, h.UnitEnable); err != nil {
				return err
			}
			if recorded {
				return op.Rewrite(ctx, h, n, before)
			}
			return op.Forget(ctx, h, n)
		},
	}, nil
}

// swapUnits are the units that kubexm masked or disabled.
type swapUnits struct {
	Masked   []string `json:"masked,omitempty"`
	Disabled []string `json:"disabled,omitempty"`
}

func (u swapUnits) each(ctx context.Context, h *steps.Host, masked, disabled func(context.Context, string) error) error {
	for _, name := range u.Masked {
		if err := masked(ctx, name); err != nil {
			return err
		}
	}
	for _, name := range u.Disabled {
		if err := disabled(ctx, name); err != nil {
			return err
		}
	}
	return h.DaemonReload(ctx)
}

func (n NoSwapUnits) noted(e op.Record) (u swapUnits, err error) {
	if e.Value != "" {
		if err := json.Unmarshal([]byte(e.Value), &u); err != nil {
			return u, fmt.Errorf("record of %s: %w", n, err)
		}
	}
	return u, nil
}

func (n NoSwapUnits) note(ctx context.Context, h *steps.Host, before op.Record, now swapUnits) error {
	all, err := n.noted(before)
	if err != nil {
		return err
	}
	merge := func(a, b []string) []string {
		out := slices.Concat(a, b)
		slices.Sort(out)
		return slices.Compact(out)
	}
	all.Masked, all.Disabled = merge(all.Masked, now.Masked), merge(all.Disabled, now.Disabled)
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return op.Remember(ctx, h, n, op.Record{Existed: true, Value: string(text)})
}

// Gone unmasks and enables the units again. It skips a unit whose file no longer exists.
func (n NoSwapUnits) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	e, recorded, err := op.ReadRecord(ctx, h, n)
	if err != nil || !recorded {
		return nil, err
	}
	u, err := n.noted(e)
	if err != nil {
		return nil, err
	}
	return &op.Change{What: "let start again: " + strings.Join(slices.Concat(u.Masked, u.Disabled), ", "), Apply: func(ctx context.Context, h *steps.Host) error {
		enable := func(ctx context.Context, name string) error {
			s, err := h.Unit(ctx, name)
			if err != nil || !s.Found() {
				return err
			}
			return h.UnitEnable(ctx, name)
		}
		if err := u.each(ctx, h, h.UnitUnmask, enable); err != nil {
			return err
		}
		return op.Forget(ctx, h, n)
	}}, nil
}
