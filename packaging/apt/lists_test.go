package apt

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/packaging"
)

// lists is what apt downloaded: files called after their addresses, in apt's own
// packing, which its helper undoes. Their digests are those of the plain text.
type lists string

func (l lists) Open(_ context.Context, url string) (io.ReadCloser, error) {
	_, rest, _ := strings.Cut(url, "://")
	name := filepath.Join(string(l), strings.ReplaceAll(rest, "/", "_"))
	if f, err := os.Open(name); err == nil {
		return f, nil
	}
	if _, err := os.Stat(name + ".lz4"); err != nil {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	c := exec.Command("/usr/lib/apt/apt-helper", "cat-file", name+".lz4")
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{out, closer(c.Wait)}, c.Start()
}

type closer func() error

func (c closer) Close() error { return c() }

// realArchive reads the lists of this machine, or of the folder that the
// environment names, with the machine's own configuration and keys.
func realArchive(t *testing.T) *Archive {
	t.Helper()
	dir := os.Getenv("KUBEXM_APT_LISTS")
	if dir == "" {
		t.Skip("set KUBEXM_APT_LISTS to a folder such as /var/lib/apt/lists")
	}
	sources, problems := ReadFolder("/etc/apt")
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	a, err := Open(t.Context(), lists(dir), Request{Sources: sources, Arch: runtime.GOARCH, Distribution: "debian", Release: "12"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// defaults is what every node needs.
var defaults = strings.Fields("socat conntrack ebtables ipset ipvsadm nfs-common open-iscsi bash-completion chrony haproxy keepalived nginx curl tar")

func want(names ...string) []packaging.Requirement {
	var out []packaging.Requirement
	for _, n := range names {
		out = append(out, packaging.Requirement{Any: []packaging.Relation{{Name: n}}})
	}
	return out
}

func TestRealLists(t *testing.T) {
	debug.SetGCPercent(100)
	start := time.Now()
	a := realArchive(t)
	read := time.Since(start)
	for _, n := range a.Notes {
		t.Log(n)
	}
	base, err := a.Universe.BaseClosure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.Universe.Solve(t.Context(), packaging.Request{Want: want(defaults...), Installed: base})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Fill(s.Add); err != nil {
		t.Fatal(err)
	}
	all := time.Since(start)
	t.Logf("read in %s, all in %s; base %d, to add %d, peak %s", read, all, len(base), len(s.Add), peak(t))
	for _, p := range s.Add {
		t.Log(p, p.Repository)
	}
}

// peak gives the most memory that the process had.
func peak(t *testing.T) string {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}
