package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const stale = "is stale: run go generate ./manifest (-want +got):\n%s"

// TestDocstringsAreUpToDate: what the binary says of a field is what its comment says.
func TestDocstringsAreUpToDate(t *testing.T) {
	want, err := docstringsFile("../../manifest")
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "../../manifest/docstrings_gen.go", string(want))
}

func TestPagesAreUpToDate(t *testing.T) {
	for name, want := range allPages() {
		compare(t, filepath.Join("../../docs/reference", name), want)
	}
}

func compare(t *testing.T, file, want string) {
	t.Helper()
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s "+stale, file, diff)
	}
}

// TestRunWrites both kinds of output, and gives errors back.
func TestRunWrites(t *testing.T) {
	dir := t.TempDir()
	if err := run([]string{"config", "-source", "../../manifest", "-docstrings", filepath.Join(dir, "docstrings_gen.go"), "-pages", dir}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"docstrings_gen.go", "config.md", "config-not-yet-built.md"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || len(b) < 1000 {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
	if err := run([]string{"config", "-docstrings", filepath.Join(dir, "none", "x.go")}); err == nil {
		t.Error("a file in a folder that is not there was written")
	}
	for _, args := range [][]string{nil, {"other"}} {
		if err := run(args); err == nil {
			t.Errorf("%q is understood", args)
		}
	}
}
