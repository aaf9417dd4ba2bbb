package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestUsage: whatever is wrong with a command line ends with the exit code that
// docs/reference/exit-codes.md gives for it, and says where help is.
func TestUsage(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"nosuch", `unknown command "nosuch" for "kubexm"`},
		{"bundel", "did you mean kubexm bundle?"},
		{"bundle bild", "did you mean kubexm bundle build?"},
		{"bundle ls", "bundle ls requires the archive: kubexm bundle ls ARCHIVE"},
		{"bundle lock -f x extra", `bundle lock does not take the argument "extra": kubexm bundle lock -f CONFIG`},
		{"bundle build", "-f is missing: the cluster config"},
		{"bundle extract x.tar.zst", "one of --files, --oci, --layout is missing"},
		{"bundle extract x.tar.zst --files a --oci b", "--files and --oci cannot be used together"},
		{"bundle diff a.tar.zst", "bundle diff requires the archive to compare to: kubexm bundle diff FROM TO"},
		{"registry serve --bundle x --tls-cert a", "--tls-key is missing: --tls-cert requires it"},
		{"bundle build -f x --parallel 0", "--parallel 0: must be at least 1"},
		{"install --bundle x -p -3", "--parallel -3: must be at least 1"},
		{"help nosuch", `unknown command "nosuch"`},
		{"completion nosuch", `unknown command "nosuch" for "kubexm completion"`},
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
