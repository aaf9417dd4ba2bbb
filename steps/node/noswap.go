package node

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// NoSwap is a running kernel without swap. NoSwapInFstab and NoSwapUnits keep swap off at
// boot.
type NoSwap struct{ op.NoNeeds }

func (NoSwap) String() string { return "swap off" }

// Want turns off all swap devices and files.
func (n NoSwap) Want(ctx context.Context, h *steps.Host, _ bool) (*op.Change, error) {
	active, _, err := h.Swaps(ctx)
	if err != nil || len(active) == 0 {
		return nil, err
	}
	var before op.Record
	var begun, recorded bool
	return &op.Change{
		What: "switch swap off: " + strings.Join(paths(active), ", "),
		Apply: func(ctx context.Context, h *steps.Host) error {
			var err error
			if before, recorded, err = op.ReadRecord(ctx, h, n); err != nil {
				return err
			}
			begun = true
			if err := n.note(ctx, h, before, active); err != nil {
				return err
			}
			for _, s := range slices.Backward(active) { // turned on again in the original order, they get their earlier priorities
				if err := h.SwapOff(ctx, s.Path); err != nil {
					return steps.Advise(err, "run swapon --show and free on %s to see whether the swapped data fits into its memory, and stop programs that use it", h.Name)
				}
			}
			return nil
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if !begun {
				return nil
			}
			if err := n.on(ctx, h, active); err != nil {
				return err
			}
			if recorded {
				return op.Rewrite(ctx, h, n, before)
			}
			return op.Forget(ctx, h, n)
		},
	}, nil
}

// note adds the active swap to what an earlier run put on record.
func (n NoSwap) note(ctx context.Context, h *steps.Host, before op.Record, active []runner.Swap) error {
	all, err := n.noted(before)
	if err != nil {
		return err
	}
	for _, s := range active {
		if !slices.Contains(paths(all), s.Path) {
			all = append(all, s)
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return op.Remember(ctx, h, n, op.Record{Existed: true, Value: string(text)})
}

func (n NoSwap) noted(e op.Record) (all []runner.Swap, err error) {
	if e.Value == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(e.Value), &all); err != nil {
		return nil, fmt.Errorf("record of %s: %w", n, err)
	}
	return all, nil
}

// Gone turns on the swap that was on before.
func (n NoSwap) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	e, recorded, err := op.ReadRecord(ctx, h, n)
	if err != nil || !recorded {
		return nil, err
	}
	all, err := n.noted(e)
	if err != nil {
		return nil, err
	}
	return &op.Change{What: "switch swap on again: " + strings.Join(paths(all), ", "), Apply: func(ctx context.Context, h *steps.Host) error {
		if err := n.on(ctx, h, all); err != nil {
			return err
		}
		return op.Forget(ctx, h, n)
	}}, nil
}

// on turns swap on. If the kernel refuses, it starts the systemd unit, which may create the
// device first, such as zram after a boot. Swap that no longer exists is logged and
// skipped.
func (n NoSwap) on(ctx context.Context, h *steps.Host, all []runner.Swap) error {
	active, _, err := h.Swaps(ctx)
	if err != nil {
		return err
	}
	for _, s := range all {
		if slices.Contains(paths(active), s.Path) {
			continue
		}
		err := h.SwapOn(ctx, s)
		if runner.Refused(err) {
			err = h.UnitStart(ctx, swapUnit(s.Path))
		}
		if runner.Refused(err) {
			h.Log.WarnContext(ctx, "swap cannot be switched on again", "path", s.Path, "err", err)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func paths(all []runner.Swap) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = s.Path
	}
	return out
}

// swapUnit returns the name of systemd's unit for a path: see systemd.unit(5), string
// escaping for inclusion in unit names.
func swapUnit(path string) string {
	var b strings.Builder
	for i, c := range []byte(strings.Trim(path, "/")) {
		switch {
		case c == '/':
			b.WriteByte('-')
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == ':', c == '_', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String() + ".swap"
}

// inFstab is the prefix of a disabled swap line.
const inFstab = "# kubexm: "

// NoSwapInFstab comments out the swap lines of /etc/fstab. systemd generates units from the
// file, and drops them together with the lines.
func NoSwapInFstab() op.Edit {
	return op.Edit{Path: "/etc/fstab", Reload: true, Line: func(line string) string {
		if f := strings.Fields(line); len(f) >= 3 && !strings.HasPrefix(f[0], "#") && f[2] == "swap" {
			return inFstab + line
		}
		return line
	}}
}
