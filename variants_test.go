package kubexm_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestAnOperationIsNewFiles: a further operation is files beside the others and its place
// in pipeline.All; no other file is changed.
func TestAnOperationIsNewFiles(t *testing.T) {
	const all = "installer/pipeline/pipeline.go"
	text, err := os.ReadFile(all)
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Replace(string(text), "Create(), ", "Create(), Touch(), ", 1)
	if listed == string(text) {
		t.Fatalf("%s lists no Create()", all)
	}
	got := overlaid(t, "testdata/variants/touch.txtar", map[string]string{all: listed}, "./installer/pipeline/trial")
	if want := "touch: 1 steps\nmark/touch-hosts/node.touch  on node1\n"; got != want {
		t.Errorf("the plan is %q, want %q", got, want)
	}
}

// overlaid runs a program of the tree with an archive's files laid over it, none of which
// is there, and with changed files in the place of those that are. It gives what that prints.
func overlaid(t *testing.T, archive string, changed map[string]string, program string) string {
	t.Helper()
	a, err := txtar.ParseFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range a.Files {
		if _, err := os.Stat(f.Name); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%s is no new file: %v", f.Name, err)
		}
		changed[f.Name] = string(f.Data)
	}
	dir := t.TempDir()
	replaced := map[string]string{}
	for name, text := range changed {
		at, err := filepath.Abs(name)
		if err != nil {
			t.Fatal(err)
		}
		replaced[at] = filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(replaced[at], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "run", "-overlay", filepath.Join(dir, "overlay.json"), program).CombinedOutput()
	if err != nil {
		t.Fatalf("go run %s: %v\n%s", program, err, out)
	}
	return string(out)
}
