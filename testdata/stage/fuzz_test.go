package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFuzzChanged: a finding is red for the change that made it, and for no other.
func TestFuzzChanged(t *testing.T) {
	script, err := filepath.Abs("../tools/fuzz.sh")
	if err != nil {
		t.Fatal(err)
	}
	const parser = "package parse\n\n// Parse refuses nothing.\nfunc Parse(b []byte) {\n"
	const good, bad = parser + "}\n", parser + "if len(b) > 3 { panic(\"too long\") }\n}\n"
	const target = "package parse\n\nimport \"testing\"\n\nfunc FuzzParse(f *testing.F) {\nf.Add([]byte(\"a\"))\nf.Fuzz(func(t *testing.T, b []byte) { Parse(b) })\n}\n"
	for _, c := range []struct {
		name          string
		before, after string
		code          int
		want          string
		flakes        string
	}{
		{name: "nothing changed", before: bad, after: bad, want: "no package with fuzz targets differs from"},
		{name: "the change breaks it", before: good, after: bad, code: 1, want: "too long"},
		{name: "it was broken before", before: bad, after: bad + "\n// More is to come.\n", want: "fails with this input too", flakes: "FuzzParse (./parse) finds what was there before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			flakes := filepath.Join(dir, "flakes")
			run := func(program string, args ...string) (string, error) {
				cmd := exec.CommandContext(t.Context(), program, args...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), flakesEnv+"="+flakes)
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			commit := func(source string) {
				write(t, filepath.Join(dir, "parse/parse.go"), source)
				for _, args := range [][]string{{"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--allow-empty", "-qm", "one"}} {
					if out, err := run("git", args...); err != nil {
						t.Fatalf("git %v: %v\n%s", args, err, out)
					}
				}
			}
			if out, err := run("git", "init", "-q"); err != nil {
				t.Fatal(err, out)
			}
			if err := os.Mkdir(filepath.Join(dir, "parse"), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "go.mod"), "module toy\n\ngo 1.26\n")
			write(t, filepath.Join(dir, "parse/parse_test.go"), target)
			commit(c.before)
			commit(c.after)
			out, err := run("bash", script, "changed", "HEAD~1")
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if code := exitCode(exit); code != c.code || !strings.Contains(out, c.want) {
				t.Errorf("exit code %d, want %d and %q:\n%s", code, c.code, c.want, out)
			}
			noted, err := os.ReadFile(flakes)
			if (err == nil) != (c.flakes != "") || !bytes.HasPrefix(noted, []byte(c.flakes)) {
				t.Errorf("noted %q (%v), want %q", noted, err, c.flakes)
			}
			left, err := filepath.Glob(filepath.Join(dir, "parse/testdata/fuzz/FuzzParse/*"))
			if err != nil || (len(left) > 0) != (c.code != 0) {
				t.Errorf("inputs left in the tree: %v, %v", left, err)
			}
		})
	}
}

func exitCode(err *exec.ExitError) int {
	if err == nil {
		return 0
	}
	return err.ExitCode()
}
