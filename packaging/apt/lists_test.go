package apt

import (
	"cmp"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/packaging"
	"github.com/mensylisir/kubexm/packaging/apt/apttest"
)

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
	a, err := Open(t.Context(), apttest.Lists(dir), Request{Sources: sources, Distribution: "debian",
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
