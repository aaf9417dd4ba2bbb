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

// once builds one time for all tests of a process.
var once = sync.OnceValues(build)

// Kubexm gives the path of build/kubexm, which it brings up to date first. It is
// called in a test, as Go's cache takes no note of what TestMain reads.
func Kubexm(t testing.TB) string {
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
	return filepath.Join(s.root, "build", "kubexm")
}

// sources are the files and folders that kubexm is built of.
type sources struct {
	root  string // of the module
	paths []string
	seen  string // their state before the build
}

func build() (*sources, error) {
	s, err := find()
	if err != nil {
		return nil, err
	}
	// Not the command's Dir: os/exec asks for its time, which is another one in each clone.
	if out, err := exec.Command("make", "-C", s.root, "build").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("make build: %w\n%s", err, out)
	}
	return s, nil
}

// places are printed of each package of the module: the module's folder, its own,
// and its embedded files.
const places = `{{with .Module}}{{if .Main}}module {{.Dir}}
folder {{$.Dir}}
{{range $.EmbedFiles}}embedded {{$.Dir}}/{{.}}
{{end}}{{end}}{{end}}`

// find reads the folders and the files of the module that decide what is built, in
// ways that Go's test cache takes note of. It does not ask for the working
// directory: that would make $PWD an input.
func find() (*sources, error) {
	out, err := exec.Command("go", "list", "-deps", "-f", places, "github.com/mensylisir/kubexm/cmd/kubexm").Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages of kubexm: %w", err)
	}
	s := &sources{}
	var folders []string
	for line := range strings.Lines(string(out)) {
		switch what, path, _ := strings.Cut(strings.TrimSpace(line), " "); what {
		case "module":
			s.root = path
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
	for _, name := range []string{"go.mod", "go.sum", "Makefile", "testdata/tools/build.sh"} {
		path := filepath.Join(s.root, name)
		if _, err := os.Stat(path); err != nil {
			return nil, err
		}
		s.paths = append(s.paths, path)
	}
	s.seen = s.state()
	return s, nil
}

// state changes with the files. It is not read by package os, so that Go's test
// cache need not compare thousands of inputs.
func (s *sources) state() string {
	var b strings.Builder
	for _, path := range s.paths {
		var st unix.Stat_t
		err := unix.Stat(path, &st)
		fmt.Fprintln(&b, path, err, st.Size, st.Mode, st.Mtim)
	}
	return b.String()
}

// distrust keeps Go from caching the result where a file was changed since the
// build: Go looks at the files after the tests only, and would take the result for
// that of the changed program.
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
