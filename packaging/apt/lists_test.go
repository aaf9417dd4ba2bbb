package apt

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
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

// realArchive reads the lists in the folder that KUBEXM_APT_LISTS names, such as
// /var/lib/apt/lists, with the machine's keys: those of Debian 12, for the
// machine's architecture, as /etc/apt configures them, where KUBEXM_APT_RELEASE,
// KUBEXM_APT_ARCH and KUBEXM_APT_ETC do not say otherwise.
func realArchive(t *testing.T) *Archive {
	t.Helper()
	dir := os.Getenv("KUBEXM_APT_LISTS")
	if dir == "" {
		t.Skip("set KUBEXM_APT_LISTS to a folder such as /var/lib/apt/lists")
	}
	sources, problems := ReadFolder(cmp.Or(os.Getenv("KUBEXM_APT_ETC"), "/etc/apt"))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	a, err := Open(t.Context(), lists(dir), Request{Sources: sources, Distribution: "debian",
		Arch: cmp.Or(os.Getenv("KUBEXM_APT_ARCH"), runtime.GOARCH), Release: cmp.Or(os.Getenv("KUBEXM_APT_RELEASE"), "12")})
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

// TestRealLists finds the closure of what every node needs among a whole
// distribution's packages: in 5 s at most and with at most 200 MB.
func TestRealLists(t *testing.T) {
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
	t.Logf("read in %s, all in %s; base %d, to add %d, peak %d kB", read, all, len(base), len(s.Add), peak(t))
	for _, p := range s.Add {
		t.Log(p, p.Repository)
	}
	if all > 5*time.Second || peak(t) > 200<<10 {
		t.Errorf("%s, %d kB", all, peak(t))
	}
}

// peak gives the most memory that the process had, in kB.
func peak(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("this system does not tell")
	return 0
}
