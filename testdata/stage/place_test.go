package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCheckout(t *testing.T) {
	cache, one, two := filepath.Join(t.TempDir(), "cache"), t.TempDir(), t.TempDir()
	first, release, err := checkout(cache, one)
	if err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(first); err != nil || to != one {
		t.Errorf("the path leads to %q (%v), want %q", to, err, one)
	}
	second, releaseSecond, err := checkout(cache, two)
	if err != nil || second != two {
		t.Errorf("while another run has it: %q, %v, want %q", second, err, two)
	}
	if err := releaseSecond(); err != nil {
		t.Error(err)
	}
	if to, err := os.Readlink(first); err != nil || to != one {
		t.Errorf("the first run's path leads to %q now (%v)", to, err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	third, release, err := checkout(cache, two)
	if err != nil || third != first {
		t.Errorf("after the first run: %q, %v, want %q", third, err, first)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

// TestResultsCarryOver: a test that reads a file is served from Go's cache in
// another checkout, until the file is another one.
func TestResultsCarryOver(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "cache")
	at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	run := func(content string, at time.Time) string {
		dir := toy(t, "import (\n\"os\"\n\"testing\"\n)\n\nfunc TestRead(t *testing.T) {\nif _, err := os.ReadFile(\"data\"); err != nil { t.Fatal(err) }\n}\n")
		write(t, filepath.Join(dir, "data"), content)
		write(t, filepath.Join(dir, "Makefile"), "unit:\n\t@go test .\n")
		if err := os.Chtimes(filepath.Join(dir, "data"), at, at); err != nil {
			t.Fatal(err)
		}
		path, release, err := checkout(cache, dir)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		var out bytes.Buffer
		code, err := Runner{Table: Table{Deadline: 1, Stages: []Stage{of("unit", 60)}}, Dir: path, Out: &out, Err: &out}.Run(t.Context())
		if code != 0 || err != nil {
			t.Fatalf("exit code %d, %v\n%s", code, err, out.String())
		}
		return out.String()
	}
	run("one", at)
	if out := run("one", at); !strings.Contains(out, "(cached)") {
		t.Errorf("the same file is read anew:\n%s", out)
	}
	if out := run("two", at.Add(1)); strings.Contains(out, "(cached)") {
		t.Errorf("another file was not read:\n%s", out)
	}
}
