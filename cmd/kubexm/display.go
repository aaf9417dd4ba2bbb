package main

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/mensylisir/kubexm/installer/pipeline"
)

// display is how long work is shown, and whether in colour.
type display struct {
	progress string // of --progress; "" where the command has none
	color    string // of --color
}

// The words of --progress.
const (
	progressAuto  = "auto"
	progressTTY   = "tty"
	progressPlain = "plain"
	progressJSON  = "json"
	progressNone  = "none"
)

// longCommands are those that may take minutes.
func longCommands() []string {
	out := []string{
		"create cluster", "registry push",
		"bundle build", "bundle lock", "bundle images", "bundle verify", "bundle extract", "bundle push", "bundle pull",
		"bundle split", "bundle join", "bundle repair",
	}
	for _, p := range pipeline.All() {
		if !p.Looks {
			out = append(out, strings.Join(p.Command, " "))
		}
	}
	return out
}

// addDisplay gives long commands --progress, and all of them --color.
func (a *app) addDisplay(root *cobra.Command) {
	modes := []string{progressAuto, progressTTY, progressPlain, progressJSON, progressNone}
	eachCommand(root, func(cmd *cobra.Command) {
		if !slices.Contains(longCommands(), cmd.CommandPath()[min(len(root.Name())+1, len(cmd.CommandPath())):]) {
			return
		}
		mode := progressAuto
		f := &choice{value: &mode, allowed: modes, name: "mode"}
		cmd.Flags().Var(f, "progress", "how long work is shown: "+f.list())
		_ = cmd.RegisterFlagCompletionFunc("progress", cobra.FixedCompletions(modes, cobra.ShellCompDirectiveNoFileComp))
		if cmd.Flags().Lookup("plain") == nil {
			cmd.Flags().Bool("plain", false, "the same as --progress plain")
		}
		cmd.MarkFlagsMutuallyExclusive("progress", "plain")
	})
	colors := []string{"auto", "always", "never"}
	a.display.color = colors[0]
	c := &choice{value: &a.display.color, allowed: colors, name: "when"}
	root.PersistentFlags().Var(c, "color", "colour what is wrong: "+c.list())
	_ = root.RegisterFlagCompletionFunc("color", cobra.FixedCompletions(colors, cobra.ShellCompDirectiveNoFileComp))
}

// setDisplay reads the flags of display once they are parsed.
func (a *app) setDisplay(cmd *cobra.Command) error {
	if f := cmd.Flags().Lookup("progress"); f != nil {
		a.display.progress = f.Value.String()
		if plain := cmd.Flags().Lookup("plain"); plain.Changed && plain.Value.String() == "true" {
			a.display.progress = progressPlain
		}
	}
	if a.display.progress == progressTTY && !a.drawable() {
		return &coded{error: errors.New("--progress tty: standard error is no terminal that a live view can be drawn on"), code: exitUsage, advice: "--progress plain prints lines"}
	}
	on := a.colored()
	if w, ok := a.err.(*plainWriter); ok {
		w.setColor(on)
	}
	a.screen.setColor(on)
	return nil
}

// drawable tells whether standard error is a terminal of known size that does more
// than print lines.
func (a *app) drawable() bool {
	f, ok := bare(a.err).(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return false
	}
	width, height, err := term.GetSize(int(f.Fd()))
	return err == nil && width > 0 && height > 0 && !a.dumb()
}

func (a *app) dumb() bool {
	v, _ := a.env("TERM")
	return v == "dumb"
}

// live tells whether long work is shown as a frame or a bar that moves. NO_COLOR has
// no say in it.
func (a *app) live() bool {
	switch a.display.progress {
	case progressTTY:
		return true
	case progressPlain, progressJSON, progressNone:
		return false
	}
	return !a.structured() && a.drawable()
}

// colored tells whether standard error is coloured: --color decides, else NO_COLOR,
// else whether it is a terminal that knows colours.
func (a *app) colored() bool {
	switch a.display.color {
	case "always":
		return true
	case "never":
		return false
	}
	if v, ok := a.env("NO_COLOR"); ok && v != "" {
		return false
	}
	return isTerminal(a.err) && !a.dumb()
}

// lineWords are the words that begin a line which is coloured, and their colours.
var lineWords = regexp.MustCompile(`(?m)^(?:error|warning|note|next):`)

// colorText colours the words that say of what kind a line is. within says that text
// goes on in the middle of a line.
func colorText(text string, within bool) string {
	begin := 0 // of what may be coloured
	if within {
		if begin = strings.IndexByte(text, '\n') + 1; begin == 0 {
			return text
		}
	}
	return text[:begin] + lineWords.ReplaceAllStringFunc(text[begin:], func(word string) string {
		code := map[string]string{"error:": "31", "warning:": "33", "note:": "2", "next:": "32"}[word]
		return "\x1b[" + code + "m" + word + "\x1b[0m"
	})
}
