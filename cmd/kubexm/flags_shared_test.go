package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestOneMeaning: over the whole tree a flag's name stands for one thing, a letter for
// one flag, and -o knows JSON and YAML wherever it is.
func TestOneMeaning(t *testing.T) {
	a := &app{env: func(string) (string, bool) { return "", false }}
	meaning, first, letters := map[string]string{}, map[string]string{}, map[string]string{}
	eachCommand(a.root(), func(cmd *cobra.Command) {
		if strings.HasPrefix(cmd.CommandPath(), "kubexm completion") || cmd.Name() == "help" {
			return
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == "help" {
				return
			}
			use, _, _ := strings.Cut(f.Usage, " [$")
			use, _, _ = strings.Cut(use, ";")
			use, _, _ = strings.Cut(use, ":")
			use = strings.TrimSpace(strings.TrimPrefix(use, "of a delta"))
			if was, ok := meaning[f.Name]; ok && was != use {
				t.Errorf("--%s is %q in %s, and %q in %s", f.Name, was, first[f.Name], use, cmd.CommandPath())
			}
			meaning[f.Name], first[f.Name] = use, cmd.CommandPath()
			if was, ok := letters[f.Shorthand]; ok && f.Shorthand != "" && was != f.Name {
				t.Errorf("-%s is --%s and, in %s, --%s", f.Shorthand, was, cmd.CommandPath(), f.Name)
			}
			letters[f.Shorthand] = f.Name
			if f.Name != "output" {
				return
			}
			for _, format := range []string{"json", "yaml"} {
				if !slices.Contains(f.Value.(*choice).allowed, format) {
					t.Errorf("%s has no -o %s", cmd.CommandPath(), format)
				}
			}
		})
	})
	if len(meaning) < 40 {
		t.Fatalf("%d flags", len(meaning))
	}
}

// TestOldNames: what a flag was called before still does the same, and says so.
func TestOldNames(t *testing.T) {
	t.Chdir(t.TempDir())
	for line, want := range map[string]string{
		"config validate --file absent.yaml":                    "--file was renamed to --filename",
		"site inventory -f absent.yaml --to x":                  "--to was renamed to --out",
		"bundle split absent.tar.zst --size 4GiB":               "--size was renamed to --volume-size",
		"preflight -f absent.yaml --skip memory":                "--skip was renamed to --skip-checks",
		"install -b absent.tar.zst --skip-preflight memory":     "--skip-preflight was renamed to --skip-checks",
		"bundle sign absent.tar.zst --key absent.key":           "--key was renamed to --sign-key",
		"hosts prepare -f absent.yaml --skip-preflight cpu":     "--skip-preflight was renamed to --skip-checks",
		"create cluster -b absent.tar.zst --skip-preflight cpu": "--skip-preflight was renamed to --skip-checks",
	} {
		code, _, stderr := ran(t, strings.Fields(line)...)
		if code != exitUsage || !strings.HasPrefix(stderr, "note: "+want) || !strings.Contains(stderr, "absent.") {
			t.Errorf("%s: exit code %d\n%s", line, code, stderr)
		}
	}
}

// TestVariables: environment variables stand in for flags that are not given, and the
// help names them.
func TestVariables(t *testing.T) {
	t.Chdir(t.TempDir())
	env := map[string]string{"KUBEXM_CONFIG": "env.yaml", "KUBEXM_WORKDIR": "env-dir", "KUBEXM_KEY": "env.pub"}
	with := func(args ...string) string {
		var out, err bytes.Buffer
		a := &app{in: strings.NewReader(""), out: &out, err: &err, env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
		a.run(t.Context(), args)
		return err.String()
	}
	for line, want := range map[string]string{
		"config validate":                            "open env.yaml",
		"config validate -f flag.yaml":               "open flag.yaml",
		"audit verify --cluster demo":                "env-dir/.kubexm/demo/audit.jsonl",
		"audit verify --cluster demo --workdir here": "here/.kubexm/demo/audit.jsonl",
		"bundle verify x.tar.zst":                    "open env.pub",
		"bundle verify x.tar.zst --key flag.pub":     "open flag.pub",
		"bundle sign x.tar.zst":                      "one of --sign-key, --attach, --print-statement is missing",
	} {
		if got := with(strings.Fields(line)...); !strings.Contains(got, want) {
			t.Errorf("%s:\n%s\nwant %s", line, got, want)
		}
	}
	_, help, _ := ran(t, "bundle", "verify", "--help")
	_, more, _ := ran(t, "install", "--help")
	for _, name := range sortedKeys(env) {
		if !strings.Contains(help+more, "$"+name) {
			t.Errorf("no help names %s", name)
		}
	}
}
