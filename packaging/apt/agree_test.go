package apt

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/packaging"
)

// root is an installation that has what every one has, as apt sees it.
type root struct {
	options []string
}

func newRoot(t *testing.T, a *Archive, lists string, base []*packaging.Package) root {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"cache/archives/partial", "state"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "status"), installed(t, a, base), 0o600); err != nil {
		t.Fatal(err)
	}
	r := root{}
	for _, o := range []string{
		"Dir::State=" + dir + "/state", "Dir::State::status=" + dir + "/status", "Dir::State::lists=" + lists, "Dir::Cache=" + dir + "/cache",
		"Dir::Etc=" + cmp.Or(os.Getenv("KUBEXM_APT_ETC"), "/etc/apt"), "APT::Architecture=" + cmp.Or(os.Getenv("KUBEXM_APT_ARCH"), runtime.GOARCH),
		"APT::Install-Recommends=false", "Debug::NoLocking=true", "Dir::Cache::pkgcache=pkgcache.bin", "Dir::Cache::srcpkgcache=srcpkgcache.bin", "APT::Get::Show-User-Simulation-Note=false",
	} {
		r.options = append(r.options, "-o", o)
	}
	return r
}

// installed gives what dpkg's status says where packages are installed.
func installed(t *testing.T, a *Archive, base []*packaging.Package) []byte {
	t.Helper()
	if err := a.Fill(base); err != nil {
		t.Fatal(err)
	}
	var status bytes.Buffer
	for _, p := range base {
		status.WriteString("Package: " + p.Name + "\nStatus: install ok installed\n")
		_, rest, _ := bytes.Cut(p.Record, []byte("\n"))
		status.Write(rest)
		status.WriteString("\n")
	}
	return status.Bytes()
}

// install gives what apt would install, sorted, or in words why not.
func (r root) install(t *testing.T, names []string) ([]string, string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "apt-get", slices.Concat(r.options, []string{"-s", "install"}, names)...)
	out, err := c.CombinedOutput()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return nil, string(out)
	} else if err != nil {
		t.Fatal(err)
	}
	var chosen []string
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		switch {
		case len(f) > 2 && f[0] == "Inst":
			chosen = append(chosen, f[1]+" "+strings.Trim(f[2], "([]"))
		case len(f) > 1 && f[0] == "Remv":
			chosen = append(chosen, "-"+f[1])
		}
	}
	slices.Sort(chosen)
	return chosen, ""
}

// TestAgreesWithApt takes sets of random packages of this machine's lists, and
// compares the closure with what apt's own simulation says.
func TestAgreesWithApt(t *testing.T) {
	a := realArchive(t)
	sets, err := strconv.Atoi(cmp.Or(os.Getenv("KUBEXM_APT_SETS"), "20"))
	if err != nil {
		t.Fatal(err)
	}
	base, err := a.Universe.BaseClosure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	apt := newRoot(t, a, os.Getenv("KUBEXM_APT_LISTS"), base)
	all := allNames(a)
	r := rand.New(rand.NewPCG(12, 500))
	classes := map[string]int{}
	for n := range sets {
		var names []string
		for range 1 + r.IntN(8) {
			names = append(names, all[r.IntN(len(all))])
		}
		if n == 0 {
			names = defaults
		}
		have, why := solved(t, a, base, names)
		want, aptWhy := apt.install(t, names)
		class := "equal"
		if n > 0 && n%50 == 0 {
			t.Logf("%d sets: %v", n, classes)
		}
		switch {
		case why != "" && aptWhy != "":
			class = "both say that it cannot be"
			t.Logf("set %d %v: %.500s", n, names, why)
		case why != "" && slices.ContainsFunc(want, func(x string) bool { return strings.HasPrefix(x, "-") }):
			class = "apt removes what every installation has, and ours refuses"
			t.Logf("set %d %v: %s", n, names, why)
		case why != "":
			t.Errorf("set %d %v: apt finds %d packages, and we none: %s", n, names, len(want), why)
			continue
		case !slices.Equal(have, want):
			class = apt.difference(t, have, want, aptWhy)
			t.Logf("set %d %v: %s: %s", n, names, class, listed(have, want))
		}
		classes[class]++
	}
	t.Logf("of %d sets: %v", sets, classes)
}

// difference tells in which way ours is another solution. It has to be one: apt,
// asked for just these packages, adds none and removes none.
func (r root) difference(t *testing.T, have, want []string, aptWhy string) string {
	t.Helper()
	var names []string
	for _, x := range have {
		name, version, _ := strings.Cut(x, " ")
		names = append(names, name+"="+version)
	}
	if whole, why := r.install(t, names); !slices.Equal(whole, have) {
		t.Errorf("apt does not take ours as it is: %s %s", listed(have, whole), why)
	}
	switch {
	case aptWhy != "":
		return "apt's search ends without one that there is"
	case !slices.ContainsFunc(have, func(x string) bool { return !slices.Contains(want, x) }):
		return "ours is a part of apt's"
	case len(have) < len(want):
		return "another choice, ours smaller"
	case len(have) == len(want):
		return "another choice, as large"
	}
	return "another choice, ours larger"
}

func allNames(a *Archive) []string {
	var out []string
	for p := range a.records.at {
		out = append(out, p.Name)
	}
	slices.Sort(out)
	return out
}

func solved(t *testing.T, a *Archive, base []*packaging.Package, names []string) ([]string, string) {
	t.Helper()
	s, err := a.Universe.Solve(t.Context(), packaging.Request{Want: want(names...), Installed: base})
	if err != nil {
		return nil, err.Error()
	}
	var out []string
	for _, p := range s.Add {
		out = append(out, p.Name+" "+p.Version)
	}
	slices.Sort(out)
	return out, ""
}

// listed words what is chosen here and not there, and the other way round.
func listed(have, want []string) string {
	var only, missing []string
	for _, x := range have {
		if !slices.Contains(want, x) {
			only = append(only, x)
		}
	}
	for _, x := range want {
		if !slices.Contains(have, x) {
			missing = append(missing, x)
		}
	}
	return fmt.Sprintf("ours %d, apt's %d; only ours %v; only apt's %v", len(have), len(want), only, missing)
}
