package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

// printJSON writes v as JSON, in the format of every -o json.
func (a *app) printJSON(v any) error {
	a.printed = true
	return console.WriteJSON(a.out, v)
}

// printLine writes v as printValue does, but JSON on one line, for commands that keep
// running.
func (a *app) printLine(v any) error {
	a.printed = true
	return console.NewLines(a.out, a.output).Write(v)
}

// printValue writes v in the format of -o, json or yaml.
func (a *app) printValue(v any) error {
	a.printed = true
	if a.output == "yaml" {
		return console.WriteYAML(a.out, v)
	}
	return console.WriteJSON(a.out, v)
}

// printWarnings prints the warnings among ps on standard error.
func (a *app) printWarnings(ps manifest.Problems) {
	for _, p := range ps {
		if p.Severity == manifest.Warning {
			fmt.Fprintln(a.err, p.String())
		}
	}
}

// refuseExisting returns a usage error if path exists and force is not set.
func refuseExisting(path string, force bool) error {
	_, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || (err == nil && force):
		return nil
	case err != nil:
		return err
	}
	return &refusal.Error{Err: fmt.Errorf("%s already exists", path), Kind: refusal.Usage, Advice: "--force replaces it"}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// completeArchives completes archive names for the first argument in the shell.
func completeArchives(cmd *cobra.Command) {
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return []string{"tar.zst", "001"}, cobra.ShellCompDirectiveFilterFileExt
	}
}

// progress returns the progress display on standard error; with quiet it shows nothing.
func (a *app) progress(quiet bool) *console.Progress {
	return console.NewProgress(a.err, console.ProgressOptions{Display: a.display, Quiet: quiet, Live: a.live()})
}

// tableWidth returns the maximum width of a table written to w; 0, unlimited, if w is
// not a terminal.
func (a *app) tableWidth(w io.Writer) int {
	if !console.IsTerminal(w) {
		return 0
	}
	return a.screen.Width()
}
