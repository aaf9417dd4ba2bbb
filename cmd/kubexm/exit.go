package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/steps"
)

// The exit codes; docs/reference/exit-codes.md lists them.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2 // wrong flags or arguments, or a config with errors
	exitPreflight   = 3 // hosts do not meet the requirements; nothing was changed
	exitRefused     = 4 // a bundle, lock file or artifact failed verification
	exitInterrupted = 130
)

// exitCodes maps kinds of refusals to exit codes.
var exitCodes = map[refusal.Kind]int{
	refusal.Failed: exitFailed, refusal.Usage: exitUsage, refusal.Hosts: exitPreflight, refusal.Content: exitRefused, refusal.Interrupted: exitInterrupted,
}

// errReported ends a command whose error message was already printed; only the exit
// code is left.
var errReported = errors.New("already reported")

// usageError returns err as an error in the command line.
func usageError(cmd *cobra.Command, err error) error {
	return &refusal.Error{Err: err, Kind: refusal.Usage, Advice: "run `" + cmd.CommandPath() + " --help`"}
}

// exitCode returns the exit code of a command that ends with err.
func exitCode(ctx context.Context, err error) int {
	var hosts installer.HostErrors
	var problems manifest.Problems
	var c *refusal.Error
	switch {
	case err == nil:
		return exitDone
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &hosts):
		return exitPreflight
	case errors.As(err, &problems):
		return exitUsage
	case errors.As(err, &c):
		return exitCodes[c.Kind]
	}
	return exitFailed
}

// report prints err in the format of all commands, and returns the exit code.
func (a *app) report(ctx context.Context, err error) int {
	code := exitCode(ctx, err)
	var hosts installer.HostErrors
	var problems manifest.Problems
	var c *refusal.Error
	if err != nil && a.structured() && a.lines == nil && !a.printed && !errors.Is(err, errReported) {
		a.failedJSON(err, code)
	}
	switch {
	case err == nil || errors.Is(err, errReported):
	case code == exitInterrupted:
		fmt.Fprintln(a.err, "interrupted; run the same command again to continue")
	case errors.As(err, &hosts):
		for _, e := range hosts {
			fmt.Fprintf(a.err, "error: %v\n", e)
			a.printAdvice(e)
		}
	case errors.As(err, &problems):
		a.printProblems(problems)
	case errors.As(err, &c):
		fmt.Fprintf(a.err, "error: %v\n", err)
		if c.Advice != "" {
			fmt.Fprintf(a.err, "  try   %s\n", c.Advice)
		}
	default:
		fmt.Fprintf(a.err, "error: %v\n", err)
		a.printAdvice(err)
	}
	var unfinished *bundle.UnfinishedError
	if errors.As(err, &unfinished) {
		fmt.Fprintf(a.err, "  kept  %s in %s; run the same command again to continue\n", bundle.Bytes(unfinished.Bytes), unfinished.Path)
	}
	return code
}

// printAdvice prints the advice that is attached to err.
func (a *app) printAdvice(err error) {
	for _, advice := range steps.Advice(err) {
		fmt.Fprintf(a.err, "  try   %s\n", advice)
	}
}

// printProblems prints each problem on a line, then the number of errors and warnings.
func (a *app) printProblems(ps manifest.Problems) {
	errs, warns := 0, 0
	for _, p := range ps {
		fmt.Fprintln(a.err, p.String())
		if p.Severity == manifest.Warning {
			warns++
		} else {
			errs++
		}
	}
	fmt.Fprintf(a.err, "%s, %s\n", console.FormatCount(errs, "error"), console.FormatCount(warns, "warning"))
}
