package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"
)

// maxRetries is the maximum number of failed tests to run again: more of them are not flaky.
const maxRetries = 5

// Tests is one call of go test.
//
// A failed test is run once more, alone. If it passes then, the run passes and the test is
// reported as flaky, in the output and in the summary of the stages. A data race, a panic
// (including an exceeded timeout) and a package that does not build fail at once.
type Tests struct {
	// Args are the arguments of go test: flags with their value after "=", packages, then
	// flags of the tests themselves.
	Args    []string
	Dir     string   // of the module; empty is the working directory
	Once    bool     // no test is run again
	MustRun []string // names of tests that must run if selected, in this stage or an earlier one
	Notes   Notes
	Out     io.Writer
	Err     io.Writer
}

// Run runs the tests and prints what go test prints, then the skipped tests. The
// exit code is 0 or 1.
func (t Tests) Run(ctx context.Context) (int, error) {
	flags, packages, rest, err := split(t.Args)
	if err != nil {
		return 2, err
	}
	first, err := t.gotest(ctx, slices.Concat(flags, packages, rest))
	if err != nil {
		return 1, err
	}
	var red []string
	switch {
	case len(first.serious) > 0 || t.Once:
		red = first.serious
		for _, f := range first.failed {
			red = append(red, f.String()+" failed")
		}
	case len(first.failed) > maxRetries:
		red = []string{fmt.Sprintf("%d tests failed, too many to run them again", len(first.failed))}
	default:
		red, err = t.again(ctx, first, flags, rest)
	}
	if err != nil {
		return 1, err
	}
	ran, err := read(t.Notes.Ran)
	if err != nil {
		return 1, err
	}
	red = append(red, t.skips(first, ran)...)
	if err := t.noteRan(first); err != nil {
		return 1, err
	}
	if len(red) == 0 {
		return 0, nil
	}
	slices.Sort(red)
	for _, r := range slices.Compact(red) {
		fmt.Fprintf(t.Out, "RED %s\n", r)
	}
	return 1, nil
}

// again runs the failed tests once more, each alone, and returns those that fail again. Those
// that pass count as passed.
func (t Tests) again(ctx context.Context, o *outcome, flags, rest []string) (red []string, err error) {
	flags = slices.DeleteFunc(slices.Clone(flags), func(f string) bool {
		return strings.HasPrefix(f, "-run=") || strings.HasPrefix(f, "-count=") || strings.HasPrefix(f, "-shuffle=")
	})
	for _, f := range o.failed {
		fmt.Fprintf(t.Out, "== %s failed; it runs once more, alone\n", f)
		second, err := t.gotest(ctx, slices.Concat(flags, []string{"-run=^" + f.Name + "$", "-count=1", f.Package}, rest))
		if err != nil {
			return red, err
		}
		if len(second.failed) > 0 || len(second.serious) > 0 || !second.passed[f] {
			red = append(red, f.String()+" failed twice")
			continue
		}
		fmt.Fprintf(t.Out, "FLAKY %s\n", f)
		o.passed[f] = true
		if err := add(t.Notes.Flakes, f.String()); err != nil {
			return red, err
		}
	}
	return red, nil
}

// skips prints the skipped tests by reason, and returns those that must not be skipped. A test
// that an earlier stage ran may be skipped: some are, under the race detector.
func (t Tests) skips(o *outcome, ran []string) (red []string) {
	var reasons []string
	by := map[string][]string{}
	for _, s := range o.skipped {
		if by[s.reason] == nil {
			reasons = append(reasons, s.reason)
		}
		by[s.reason] = append(by[s.reason], s.Name)
		if slices.Contains(t.MustRun, s.Name) && !slices.Contains(ran, s.Name) {
			red = append(red, fmt.Sprintf("%s was skipped and must run here: %s", s.test, s.reason))
		}
	}
	for _, r := range reasons {
		names := by[r]
		more := ""
		if len(names) > 3 {
			more, names = fmt.Sprintf(" and %d more", len(names)-3), names[:3]
		}
		fmt.Fprintf(t.Out, "skipped: %s: %s%s\n", r, strings.Join(names, ", "), more)
	}
	return red
}

// noteRan records which of the tests that must run did.
func (t Tests) noteRan(o *outcome) error {
	var ran []string
	for p := range o.passed {
		if slices.Contains(t.MustRun, p.Name) {
			ran = append(ran, p.Name)
		}
	}
	slices.Sort(ran)
	return add(t.Notes.Ran, ran...)
}

// gotest runs go test once. Its exit code is only used if it produced no events.
func (t Tests) gotest(ctx context.Context, args []string) (*outcome, error) {
	verbose := slices.Contains(args, "-v")
	c := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	c.Dir, c.Stderr = t.Dir, t.Err
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGINT) }
	c.WaitDelay = grace
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	o, readErr := listen(out, t.Out, verbose)
	err = c.Wait()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case readErr != nil:
		return nil, readErr
	case err != nil && !errors.As(err, &exit):
		return nil, err
	case err != nil && len(o.failed) == 0 && len(o.serious) == 0:
		return nil, fmt.Errorf("go test: %w", err)
	}
	return o, nil
}

// split finds the packages among the arguments of go test.
func split(args []string) (flags, packages, rest []string, err error) {
	for _, a := range args {
		switch {
		case !strings.HasPrefix(a, "-") && rest == nil:
			packages = append(packages, a)
		case packages == nil:
			flags = append(flags, a)
		default:
			rest = append(rest, a)
		}
	}
	if packages == nil {
		return nil, nil, nil, fmt.Errorf("specify packages after the flags: %s", strings.Join(args, " "))
	}
	return flags, packages, rest, nil
}
