package runner

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/steps/connector"
)

// Swap is a swap device or file.
type Swap struct {
	Path     string `json:"path"`     // of the device or file
	Priority int    `json:"priority"` // negative: chosen by the kernel
}

// Swaps returns the active swaps, the highest priority first, and the names of systemd's
// swap units in any state, which may activate one.
func (r *Runner) Swaps(ctx context.Context) (active []Swap, units []string, err error) {
	res, err := r.script(ctx, connector.VerbSwaps, scriptSwaps, nil)
	if err != nil {
		return nil, nil, err
	}
	return parseSwapList(string(res.Stdout))
}

// parseSwapList parses the output of scriptSwaps. The kernel writes spaces in a path as
// octal escapes.
func parseSwapList(text string) (active []Swap, units []string, err error) {
	kernel, names, _ := strings.Cut(text, "\n\n")
	for i, line := range strings.Split(strings.TrimRight(kernel, "\n"), "\n") {
		f := strings.Fields(line)
		if i == 0 || len(f) == 0 {
			continue // the header
		}
		if len(f) != 5 {
			return nil, nil, fmt.Errorf("%q is not a line of /proc/swaps", line)
		}
		s := Swap{Path: unescape(f[0])}
		if s.Priority, err = strconv.Atoi(f[4]); err != nil {
			return nil, nil, fmt.Errorf("priority of %s: %w", f[0], err)
		}
		active = append(active, s)
	}
	slices.SortStableFunc(active, func(a, b Swap) int { return b.Priority - a.Priority })
	for name := range strings.Lines(names) {
		if name = strings.TrimSpace(name); unitName.MatchString(name) {
			units = append(units, name)
		}
	}
	slices.Sort(units)
	return active, slices.Compact(units), nil
}

// unescape replaces octal escapes: \040 is a space.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// SwapOff deactivates a swap. The kernel reads the swapped pages back, which takes time and
// fails if memory does not suffice.
func (r *Runner) SwapOff(ctx context.Context, path string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	_, err := r.do(ctx, connector.Cmd{Verb: connector.VerbSwapOff, Argv: []string{"swapoff", "--", path}, Sudo: true})
	return err
}

// SwapOn activates a swap until the next boot.
func (r *Runner) SwapOn(ctx context.Context, s Swap) error {
	if err := checkPath(s.Path); err != nil {
		return err
	}
	argv := []string{"swapon"}
	if s.Priority >= 0 {
		argv = append(argv, "-p", strconv.Itoa(s.Priority))
	}
	_, err := r.do(ctx, connector.Cmd{Verb: connector.VerbSwapOn, Argv: append(argv, "--", s.Path), Sudo: true})
	return err
}
