package components

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEditOnce(t *testing.T) {
	for name, text := range map[string]string{"once": "a\nif old {\nb\n", "absent": "a\n", "twice": "if old {\nif old {\n"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "checks.go")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			err := Edit{File: "checks.go", From: "if old {", To: "if new {"}.apply(dir)
			got, _ := os.ReadFile(file)
			if name == "once" {
				if err != nil || string(got) != "a\nif new {\nb\n" {
					t.Errorf("%q, %v", got, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), "not once") || string(got) != text {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestMinorOf(t *testing.T) {
	for release, want := range map[string]string{"go1.26.8": "go1.26", "go1.26": "go1.26", "go1.27rc1": "go1.27rc1", "devel": "devel"} {
		if got := minorOf(release); got != want {
			t.Errorf("%s: %s, want %s", release, got, want)
		}
	}
}

// TestFoldersOfOwnPrograms: the source that decides whether a program of the lab's own is built anew is there.
func TestFoldersOfOwnPrograms(t *testing.T) {
	all, err := everything()
	if err != nil {
		t.Fatal(err)
	}
	asked, err := Asked()
	if err != nil {
		t.Fatal(err)
	}
	n, b := 0, &Builder{Root: "../../.."}
	for _, c := range append(all, asked...) {
		if c.Module != "" {
			continue
		}
		n++
		if files, err := sources(b.folder(c)); err != nil || len(files) == 0 {
			t.Errorf("%s: %d files, %v", c.Name, len(files), err)
		}
	}
	if n < 5 {
		t.Errorf("the lab has %d programs of its own", n)
	}
}
