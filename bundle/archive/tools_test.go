package archive

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tool skips the test where a program is not installed.
func tool(t *testing.T, names ...string) {
	t.Helper()
	for _, n := range names {
		if _, err := exec.LookPath(n); err != nil {
			t.Skipf("no %s here", n)
		}
	}
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestPlainTools reads an archive with the tools that every distribution has.
func TestPlainTools(t *testing.T) {
	tool(t, "zstd", "tar", "sh")
	s := newSample(edges, []int{5, chunkSize, 2*chunkSize + 5})
	path := s.file(t)
	run(t, "zstd", "-q", "-t", path)

	var want []string
	for _, m := range mustOpen(t, path).Members() {
		want = append(want, m.Name)
	}
	if got := strings.Fields(run(t, "tar", "--zstd", "-tf", path)); !slices.Equal(got, want) {
		t.Errorf("tar lists %v, want %v", got, want)
	}
	for line := range strings.Lines(run(t, "tar", "--zstd", "--utc", "--numeric-owner", "-tvf", path)) {
		if !strings.HasPrefix(line, "-rw-r--r-- 0/0 ") || !strings.Contains(line, " 1970-01-01 00:00 ") {
			t.Errorf("tar says %q", line)
		}
	}
	dir := t.TempDir()
	run(t, "sh", "-c", `zstd -q -d -c "$1" | tar -x -C "$2"`, "sh", path, dir)
	if !maps.Equal(files(t, dir), s.tree()) {
		t.Error("zstd -d | tar -x gives other files")
	}
}

// TestRecompressed gives Extract what zstd and tar make of an archive.
func TestRecompressed(t *testing.T) {
	tool(t, "zstd", "sh")
	s := newSample([]int{0, 300000}, []int{chunkSize + 5})
	path := s.file(t)
	for _, level := range []string{"-1", "-19", "-9 --long=26", "-3 --no-check"} {
		out := filepath.Join(t.TempDir(), "x")
		run(t, "sh", "-c", `zstd -q -d -c "$1" | zstd -q `+level+` -c > "$2"`, "sh", path, out)
		dir, err := unpack(t, read(t, out), ExtractOptions{})
		if err != nil {
			t.Errorf("zstd %s: %v", level, err)
			continue
		}
		if !maps.Equal(files(t, dir), s.tree()) {
			t.Errorf("zstd %s: other files", level)
		}
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}
