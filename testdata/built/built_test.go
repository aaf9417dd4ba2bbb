package built

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestFind: every file of its module that a program is built of is found.
func TestFind(t *testing.T) {
	for p, least := range map[*program]int{&kubexm: 100, &brittle: 5} {
		t.Run(p.name, func(t *testing.T) { p.findsAll(t, least) })
	}
}

func (p program) findsAll(t *testing.T, least int) {
	s, err := p.find()
	if err != nil {
		t.Fatal(err)
	}
	module := filepath.Join(s.root, p.module)
	const files = `{{with .Module}}{{if .Main}}{{range $.GoFiles}}{{$.Dir}}/{{.}} {{end}}{{range $.EmbedFiles}}{{$.Dir}}/{{.}} {{end}}{{end}}{{end}}`
	out, err := p.list(module, files).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(string(out))
	if len(want) < least {
		t.Fatalf("only %d files", len(want))
	}
	for _, path := range append(want, filepath.Join(module, "go.sum"), filepath.Join(s.root, "Makefile")) {
		if !slices.Contains(s.paths, path) || !slices.Contains(s.paths, filepath.Dir(path)) && filepath.Dir(path) != s.root {
			t.Errorf("%s is built of %s, which is not read", p.name, path)
		}
	}
}

// TestDistrust: a result is kept from the cache where files changed meanwhile, and
// only there.
func TestDistrust(t *testing.T) {
	for what, change := range map[string]func(dir string) error{
		"nothing":      func(string) error { return nil },
		"a new file":   func(dir string) error { return os.WriteFile(filepath.Join(dir, "b.go"), nil, 0o600) },
		"a lost file":  func(dir string) error { return os.Remove(filepath.Join(dir, "a.go")) },
		"a saved file": func(dir string) error { return os.Chtimes(filepath.Join(dir, "a.go"), time.Time{}, time.Unix(1, 0)) },
	} {
		root := t.TempDir()
		dir, build := filepath.Join(root, "cmd"), filepath.Join(root, "build")
		for _, d := range []string{dir, build} {
			if err := os.Mkdir(d, 0o750); err != nil {
				t.Fatal(err)
			}
		}
		a := filepath.Join(dir, "a.go")
		if err := os.WriteFile(a, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, time.Time{}, time.Unix(1, 0)); err != nil { // files are not made as fast as here
			t.Fatal(err)
		}
		s := &sources{root: root, paths: []string{dir, a}}
		s.seen = s.state()
		if err := change(dir); err != nil {
			t.Fatal(err)
		}
		if err := s.distrust(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		info, err := os.Stat(filepath.Join(build, "changed-while-tested"))
		if what == "nothing" {
			if !os.IsNotExist(err) {
				t.Errorf("nothing changed, and the result is not cached: %v, %v", info, err)
			}
		} else if err != nil || time.Until(info.ModTime()) < time.Minute {
			t.Errorf("%s: the result is cached: %v, %v", what, info, err)
		}
	}
}
