package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

// longCommands returns the commands that may take minutes.
func longCommands() []string {
	out := []string{
		"create cluster", "registry push",
		"bundle build", "bundle lock", "bundle images", "bundle verify", "bundle extract", "bundle push", "bundle pull",
		"bundle split", "bundle join", "bundle repair",
	}
	for _, p := range pipeline.All() {
		if !p.ReadOnly {
			out = append(out, strings.Join(p.Command, " "))
		}
	}
	return out
}

// addDisplay adds --progress to long commands, and --color to all commands.
func (a *app) addDisplay(root *cobra.Command) {
	modes := []string{console.Auto, console.TTY, console.Plain, console.JSON, console.None}
	eachCommand(root, func(cmd *cobra.Command) {
		if !slices.Contains(longCommands(), cmd.CommandPath()[min(len(root.Name())+1, len(cmd.CommandPath())):]) {
			return
		}
		mode := console.Auto
		f := &choice{value: &mode, allowed: modes, name: "mode"}
		cmd.Flags().Var(f, "progress", "how progress is shown: "+f.list())
		_ = cmd.RegisterFlagCompletionFunc("progress", cobra.FixedCompletions(modes, cobra.ShellCompDirectiveNoFileComp))
		if cmd.Flags().Lookup("plain") == nil {
			cmd.Flags().Bool("plain", false, "the same as --progress plain")
		}
		cmd.MarkFlagsMutuallyExclusive("progress", "plain")
	})
	colors := []string{"auto", "always", "never"}
	a.display.Color = colors[0]
	c := &choice{value: &a.display.Color, allowed: colors, name: "when"}
	root.PersistentFlags().Var(c, "color", "colour of errors, warnings and notes: "+c.list())
	_ = root.RegisterFlagCompletionFunc("color", cobra.FixedCompletions(colors, cobra.ShellCompDirectiveNoFileComp))
}

// setDisplay applies the parsed display flags.
func (a *app) setDisplay(cmd *cobra.Command) error {
	if f := cmd.Flags().Lookup("progress"); f != nil {
		a.display.Progress = f.Value.String()
		if plain := cmd.Flags().Lookup("plain"); plain.Changed && plain.Value.String() == "true" {
			a.display.Progress = console.Plain
		}
	}
	if a.display.Progress == console.TTY && !console.Drawable(a.err, a.env) {
		return &refusal.Error{Err: errors.New("--progress tty: standard error is not a terminal that can show a live view"), Kind: refusal.Usage, Advice: "--progress plain prints lines"}
	}
	on := a.display.Colored(a.err, a.env)
	if w, ok := a.err.(*console.Writer); ok {
		w.SetColor(on)
	}
	a.screen.SetColor(on)
	return nil
}

// live reports whether progress is shown as a live view or a progress bar.
func (a *app) live() bool { return a.display.Live(a.err, a.env, a.structured()) }
