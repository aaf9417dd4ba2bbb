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

// printJSON writes v as every command with -o json does.
func (a *app) printJSON(v any) error {
	a.printed = true
	return console.WriteJSON(a.out, v)
}

// printLine writes v as printValue does, JSON on one line: of commands that go on.
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

// printWarnings says what was found but does not stop the command.
func (a *app) printWarnings(ps manifest.Problems) {
	for _, p := range ps {
		if p.Severity == manifest.Warning {
			fmt.Fprintln(a.err, p.String())
		}
	}
}

// refuseExisting keeps a command from replacing an archive unasked.
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

// completeArchives makes the shell offer archives for the first argument.
func completeArchives(cmd *cobra.Command) {
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return []string{"tar.zst", "001"}, cobra.ShellCompDirectiveFilterFileExt
	}
}

// progress starts showing long work; quiet shows nothing.
func (a *app) progress(quiet bool) *console.Progress {
	return console.NewProgress(a.err, console.Shown{Display: a.display, Quiet: quiet, Live: a.live()})
}

// tableWidth is how wide a table may be that is written to w: a log takes any width.
func (a *app) tableWidth(w io.Writer) int {
	if !console.IsTerminal(w) {
		return 0
	}
	return a.screen.Width()
}
