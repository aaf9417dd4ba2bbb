package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// checkout makes a tree with parts of its own.
func checkout(t *testing.T, parts string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"testdata/testall/parts.yaml": parts,
		"testdata/e2e/scenarios.yaml": "scenarios: []\n",
		".gitignore":                  "build/\nran\n",
		"source.go":                   "package x\n",
		filepath.FromSlash(written):   "{}\n",
	} {
		write(t, dir, name, text)
	}
	git := exec.Command("git", "init", "-q", dir)
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// ran gives the names that parts have written since the last call.
func ran(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "ran"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(dir, "ran")) // it may not be there
	return strings.Join(strings.Fields(string(b)), " ")
}

const three = `parts:
  - {name: first, minutes: 1, run: echo first >> ran}
  - {name: second, minutes: 1, run: "echo second >> ran; test -e build/mended"}
  - {name: third, minutes: 1, run: "echo third >> ran; echo {} >> testdata/e2e/shown.json"}
`

// TestPartsAreResumed: a failure does not stop the others; what passed is run again
// only on another tree.
func TestPartsAreResumed(t *testing.T) {
	dir := checkout(t, three)
	try := func(code int, want string, args ...string) string {
		t.Helper()
		var out, errs strings.Builder
		got := command(t.Context(), append([]string{"-root", dir}, args...), &out, &errs)
		if names := ran(t, dir); got != code || names != want {
			t.Errorf("ran %q, exit %d; want %q, %d\n%s%s", names, got, want, code, out.String(), errs.String())
		}
		return out.String() + errs.String()
	}
	text := try(1, "first second third")
	for _, want := range []string{`first +passed`, `second +FAILED .* build/test-all/second\.log`, `third +passed`, "make test-all PART=second"} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	try(1, "second")
	try(0, "", "-part", "first")
	try(1, "second", "-part", "second")
	if text := try(1, "", "-part", "fourth"); !strings.Contains(text, "there are first, second, third") {
		t.Error(text)
	}
	write(t, dir, "build/mended", "")
	try(0, "second")
	try(0, "")

	write(t, dir, "source.go", "package y\n")
	try(0, "first second third")
	write(t, dir, "testdata/testall/parts.yaml", strings.Replace(three, "echo first", "echo  first", 1))
	try(0, "first second third")
	if f, err := os.OpenFile(filepath.Join(dir, "build/test-all.jsonl"), os.O_APPEND|os.O_WRONLY, 0); err != nil {
		t.Error(err)
	} else if _, err := f.WriteString(`{"part": "fi`); err != nil || f.Close() != nil {
		t.Error(err)
	}
	try(0, "")
}

// TestAnInterruptEndsIt: the part that ran is neither passed nor failed.
func TestAnInterruptEndsIt(t *testing.T) {
	dir := checkout(t, "parts:\n  - {name: long, minutes: 1, run: \"echo long >> ran; exec sleep 600\"}\n  - {name: next, minutes: 1, run: echo next >> ran}\n")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
				cancel()
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	var out, errs strings.Builder
	if code := command(ctx, []string{"-root", dir}, &out, &errs); code != 130 || !strings.Contains(errs.String(), "the same command continues") {
		t.Errorf("exit %d\n%s%s", code, out.String(), errs.String())
	}
	if names := ran(t, dir); names != "long" || !regexp.MustCompile(`long +not run`).MatchString(out.String()) {
		t.Errorf("ran %q\n%s", names, out.String())
	}
}

// TestParts: every part of this repository calls a target that the Makefile has.
func TestParts(t *testing.T) {
	parts, err := readParts("../..")
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	target := regexp.MustCompile(`make ([a-z-]+)`)
	for _, p := range parts {
		m := target.FindStringSubmatch(p.Run)
		if m == nil || !regexp.MustCompile(`(?m)^`+m[1]+`:`).Match(makefile) {
			t.Errorf("%s: the Makefile has no target for %q", p.Name, p.Run)
		}
	}
	if len(parts) < 15 {
		t.Errorf("only %d parts", len(parts))
	}
}
