package preflight_test

import (
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/preflight"
	"github.com/mensylisir/kubexm/steps/steptest"
)

func TestHostsThatGetNoPackages(t *testing.T) {
	broken := func(s *conntest.Sim) {
		s.AddPackage("nfs-common", "2")
		s.SetPackageState("nfs-common", "half-configured")
	}
	for name, c := range map[string]struct {
		before       func(*conntest.Sim)
		what, advice string
	}{
		"a host as it should be": {},
		"an rpm host as it should be": {before: machine(func(m *conntest.Machine) {
			m.Packages, m.OSRelease = "dnf", "ID=\"rocky\"\nVERSION_ID=\"9.4\"\n"
		})},
		"another release": {
			machine(func(m *conntest.Machine) { m.OSRelease = "ID=debian\nVERSION_ID=11\n" }),
			"the bundle has no packages of debian-11, only of debian-12, rocky-9.4", "spec.bundle.operatingSystems",
		},
		"another tool": {
			machine(func(m *conntest.Machine) { m.Packages, m.OSRelease = "zypper", "ID=sles\nVERSION_ID=15\n" }),
			"packages cannot be installed with zypper", "install the packages on m1 yourself",
		},
		"broken":                     {broken, "the host's packages are in a broken state: nfs-common is half-configured", "dpkg --configure -a"},
		"in the hands of somebody":   {before: func(s *conntest.Sim) { broken(s); s.LockPackages("apt-get (process 7)", 5) }},
		"in the hands of an earlier": {before: func(s *conntest.Sim) { broken(s); s.AddDir("/var/lib/kubexm/demo/before", 0o700) }},
	} {
		t.Run(name, func(t *testing.T) {
			kase := steptest.Case{Cluster: steptest.Cluster(t, site), Before: c.before}
			found := steptest.Check(t, kase, step(t, "preflight.packages", preflight.Options{Systems: []string{"debian-12", "rocky-9.4"}}))
			switch {
			case c.what == "" && len(found) == 0:
			case len(found) != 1 || found[0].What != c.what || !strings.Contains(found[0].Advice, c.advice) || c.what == "":
				t.Errorf("found %+v", found)
			}
		})
	}
}
