package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestUsage: whatever is wrong with a command line ends with the exit code that
// docs/exit-codes.md gives for it, and says where help is.
func TestUsage(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"nosuch", `unknown command "nosuch" for "kubexm"`},
		{"bundel", "did you mean bundle?"},
		{"bundle bild", "did you mean build?"},
		{"bundle ls", "accepts 1 arg(s), received 0"},
		{"bundle lock -f x extra", `unknown command "extra"`},
		{"bundle build", `required flag(s) "filename" not set`},
		{"bundle extract x.tar.zst", "at least one of the flags"},
		{"bundle extract x.tar.zst --files a --oci b", "none of the others can be"},
		{"bundle ls --nope x", "unknown flag: --nope"},
		{"bundle ls -o xml x", "use one of: table, wide, json, yaml"},
	} {
		t.Run(c.line, func(t *testing.T) {
			var out, err bytes.Buffer
			a := &app{in: strings.NewReader(""), out: &out, err: &err, env: func(string) (string, bool) { return "", false }}
			if code := a.run(t.Context(), strings.Fields(c.line)); code != exitUsage {
				t.Errorf("exit code %d, want %d", code, exitUsage)
			}
			if !strings.Contains(err.String(), c.want) || !strings.Contains(err.String(), "--help`") {
				t.Errorf("standard error is\n%s\nwant it to say %s, and where help is", err.String(), c.want)
			}
			if out.Len() > 0 {
				t.Errorf("standard output is\n%s", out.String())
			}
		})
	}
}

// TestGroup: a group of commands without one of them prints its help.
func TestGroup(t *testing.T) {
	var out, err bytes.Buffer
	a := &app{in: strings.NewReader(""), out: &out, err: &err, env: func(string) (string, bool) { return "", false }}
	if code := a.run(t.Context(), []string{"bundle"}); code != exitDone || !strings.Contains(out.String(), "verify") || err.Len() > 0 {
		t.Errorf("exit code %d, standard output\n%s\nstandard error\n%s", code, out.String(), err.String())
	}
}
