package built

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// program is a program that the Makefile builds into the folder build.
type program struct {
	name   string   // file name in the folder build
	target string   // target of the Makefile
	module string   // the folder of its module
	path   string   // its package, relative to the module
	beside []string // further files that the build reads
}

var (
	kubexm  = program{name: "kubexm", target: "build", module: ".", path: "./cmd/kubexm", beside: []string{"testdata/tools/build.sh"}}
	brittle = program{name: "brittle", target: "build/brittle", module: "testdata/faults/brittle", path: "."}
)

// Each program is built once for all tests of a process.
var (
	onceKubexm  = sync.OnceValues(kubexm.build)
	onceBrittle = sync.OnceValues(brittle.build)
)

// Kubexm returns the path of build/kubexm after building it if it is out of date. Call it in a
// test, because Go's test cache does not record what TestMain reads.
func Kubexm(t testing.TB) string { return kubexm.built(t, onceKubexm) }

// Brittle does the same for build/brittle, the simulated disk of testdata/faults.
func Brittle(t testing.TB) string { return brittle.built(t, onceBrittle) }

func (p program) built(t testing.TB, once func() (*sources, error)) string {
	t.Helper()
	s, err := once()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.distrust(); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(s.root, "build", p.name)
}

// sources are the files and folders that a program is built from.
type sources struct {
	root  string // of the repository
	paths []string
	seen  string // their state before the build
}

func (p program) build() (*sources, error) {
	s, err := p.find()
	if err != nil {
		return nil, err
	}
	// Not the command's Dir: os/exec would read its modification time, which differs in each
	// clone.
	if out, err := exec.Command("make", "-C", s.root, p.target).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("make %s: %w\n%s", p.target, err, out)
	}
	return s, nil
}

// places is the template for each package of the module: its folder and its embedded files.
const places = `{{with .Module}}{{if .Main}}folder {{$.Dir}}
{{range $.EmbedFiles}}embedded {{$.Dir}}/{{.}}
{{end}}{{end}}{{end}}`

// find returns the folders and files of the module that the build reads, in a way that Go's
// test cache records. It does not read the working directory: that would make $PWD an input.
func (p program) find() (*sources, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return nil, fmt.Errorf("find the folder of the repository: %w", err)
	}
	s := &sources{root: strings.TrimSpace(string(out))}
	module := filepath.Join(s.root, p.module)
	if out, err = p.list(module, places).Output(); err != nil {
		return nil, fmt.Errorf("list the packages of %s: %w", p.name, err)
	}
	var folders []string
	for line := range strings.Lines(string(out)) {
		switch what, path, _ := strings.Cut(strings.TrimSpace(line), " "); what {
		case "folder":
			folders = append(folders, path)
		case "embedded":
			folders = append(folders, filepath.Dir(path))
		}
	}
	slices.Sort(folders)
	for _, dir := range slices.Compact(folders) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		s.paths = append(s.paths, dir)
		for _, e := range entries {
			if e.Type().IsRegular() {
				s.paths = append(s.paths, filepath.Join(dir, e.Name()))
			}
		}
	}
	files := []string{filepath.Join(p.module, "go.mod"), filepath.Join(p.module, "go.sum"), "Makefile"}
	for _, name := range append(files, p.beside...) {
		path := filepath.Join(s.root, name)
		if _, err := os.Stat(path); err != nil {
			return nil, err
		}
		s.paths = append(s.paths, path)
	}
	s.seen = s.state()
	return s, nil
}

// list runs go list on the packages of a module. PWD keeps the name of the folder that the
// caller used: with it a checkout has the same name in each clone.
func (p program) list(module, format string) *exec.Cmd {
	cmd := exec.Command("go", "list", "-C", module, "-deps", "-f", format, p.path)
	cmd.Env = append(os.Environ(), "PWD="+module)
	return cmd
}

// state changes with the files. It does not use package os, so that Go's test cache need not
// compare thousands of inputs.
func (s *sources) state() string {
	var b strings.Builder
	for _, path := range s.paths {
		var st unix.Stat_t
		err := unix.Stat(path, &st)
		fmt.Fprintln(&b, path, err, st.Size, st.Mode, st.Mtim)
	}
	return b.String()
}

// distrust keeps Go from caching the result if a file was changed since the build. Go checks
// the files only after the tests, and would store the result for the changed program.
func (s *sources) distrust() error {
	if s.state() == s.seen {
		return nil
	}
	// Go caches no test that opened a file younger than two seconds.
	mark := filepath.Join(s.root, "build", "changed-while-tested")
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		return err
	}
	later := time.Now().Add(time.Hour)
	return os.Chtimes(mark, later, later)
}
