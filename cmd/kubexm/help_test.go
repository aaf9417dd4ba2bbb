package main

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/cmd/kubexm/console"
)

// TestHelpIsNarrow: no line of a help is wider than 80 columns. Two of them are golden.
func TestHelpIsNarrow(t *testing.T) {
	a := &app{env: func(string) (string, bool) { return "", false }}
	var paths []string
	eachCommand(a.root(), func(cmd *cobra.Command) { paths = append(paths, cmd.CommandPath()) })
	golden := map[string]string{"kubexm": "testdata/help.txt", "kubexm install": "testdata/help-install.txt"}
	for _, path := range paths {
		code, out, stderr := ran(t, append(strings.Fields(path)[1:], "--help")...)
		if code != exitDone || stderr != "" {
			t.Errorf("%s: exit code %d, %s", path, code, stderr)
		}
		for line := range strings.SplitSeq(out, "\n") {
			if utf8.RuneCountInString(line) > helpWidth {
				t.Errorf("%s --help has a line of %d columns:\n%s", path, utf8.RuneCountInString(line), line)
			}
		}
		file := golden[path]
		if file == "" {
			continue
		}
		if *update {
			if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || string(want) != out {
			t.Errorf("%s --help is another than in %s (%v); -update takes it over:\n%s", path, file, err, out)
		}
	}
}

func TestFoldText(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"one two three\nfour\n\nfive", "one two\nthree four\n\nfive"},
		{"  ab  one two three", "  ab  one\n      two\n      three"},
		{"  one two three four", "  one two\n  three\n  four"},
	} {
		if got := console.FoldText(c.text, 10); got != c.want {
			t.Errorf("%q folded to\n%s\nwant\n%s", c.text, got, c.want)
		}
	}
}
