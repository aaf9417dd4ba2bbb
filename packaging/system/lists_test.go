package system

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/packaging/apt/apttest"
)

// real gives the release and architecture of the lists in the folder that
// KUBEXM_APT_LISTS names: Debian 12 and the machine's architecture, where
// KUBEXM_APT_RELEASE and KUBEXM_APT_ARCH do not say otherwise.
func real(t *testing.T) (web apttest.Lists, a manifest.Artifact, o Options) {
	t.Helper()
	dir := os.Getenv("KUBEXM_APT_LISTS")
	if dir == "" {
		t.Skip("set KUBEXM_APT_LISTS to a folder such as /var/lib/apt/lists")
	}
	p := manifest.Platform{OS: "linux", Arch: cmp.Or(os.Getenv("KUBEXM_APT_ARCH"), runtime.GOARCH), Distribution: "debian", Release: cmp.Or(os.Getenv("KUBEXM_APT_RELEASE"), "12")}
	return apttest.Lists(dir), wanted(p, defaults...), Options{Etc: cmp.Or(strings.TrimSuffix(os.Getenv("KUBEXM_APT_ETC"), "/apt"), "/etc")}
}

// defaults is all that a config can lead to on Debian.
var defaults = strings.Fields("socat conntrack ebtables ipset ipvsadm nfs-common open-iscsi bash-completion chrony haproxy keepalived nginx docker.io")

// wanted is an artifact that is not pinned yet.
func wanted(p manifest.Platform, names ...string) manifest.Artifact {
	a := manifest.Artifact{Kind: manifest.Packages, Name: p.System(), Version: p.Release, Platform: p, Sets: []string{"v1.32.2"},
		Packages: &manifest.PackageSet{Format: manifest.Deb, Want: names}}
	a.ID = "packages/" + a.Name + "/" + a.Version + "/" + p.Machine().String()
	return a
}

// TestPinReal pins the default list out of a whole distribution's metadata: in 5 s on
// a machine that has nothing else to do, and with 200 MB at most where the lists are
// as repositories give them. Of plain ones, as apt keeps its own, the longest
// lies in memory whole.
func TestPinReal(t *testing.T) {
	web, a, o := real(t)
	start := time.Now()
	pinned, notes, err := Pin(t.Context(), web, a, o)
	took := time.Since(start)
	for _, n := range notes {
		t.Log(n)
	}
	if err != nil {
		t.Fatal(err)
	}
	records, packages := 0, 0
	for _, m := range pinned.Members {
		t.Log(m.Path, m.Size)
		records += len(m.Record)
		if m.Package != "" {
			packages++
		}
	}
	t.Logf("%s, peak %d kB; %d packages with %d bytes, records %d bytes, date %s, base left out %d", took, peak(t), packages, pinned.Size, records, pinned.Packages.Date, len(pinned.Packages.Base))
	packed, err := filepath.Glob(filepath.Join(string(web), "*_Packages.[gx]z"))
	if took > time.Minute || err != nil || len(packed) > 0 && peak(t) > 200<<10 {
		t.Errorf("%s, %d kB, %v", took, peak(t), err)
	}
	again, _, err := Pin(t.Context(), web, a, o)
	if err != nil {
		t.Fatal(err)
	}
	same(t, pinned, again)
}

// peak gives the most memory that the process had, in kB.
func peak(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "VmHWM:")
	n, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(rest, "kB", 2)[0]))
	if err != nil || !ok {
		t.Fatal("this system does not tell", err)
	}
	return n
}
