package packages_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/packages"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// repository has three required packages: a plain one, one of two alternatives, and one
// that another package provides.
func repository(format string) steptest.Repository {
	return steptest.Repository{
		Format: format,
		Want:   []string{"socat", "ntpd | chrony", "mail-agent"},
		Packages: []steptest.Package{
			{Name: "socat", Version: "1.8", Depends: []string{"libwrap"}},
			{Name: "libwrap", Version: "7.6"},
			{Name: "chrony", Version: "4.3", Conflicts: []string{"timesyncd"}},
			{Name: "mail-agent", Version: "1", Depends: []string{"transport"}},
			{Name: "exim", Version: "4", Provides: []string{"transport"}},
		},
	}
}

func packagesCase(t *testing.T, r steptest.Repository, before func(*conntest.Sim)) steptest.Case {
	t.Helper()
	system := "debian-12"
	if r.Format == manifest.RPM {
		system = "rocky-9.4"
	}
	return steptest.Case{
		Artifacts: steptest.Artifacts{Repositories: map[string]steptest.Repository{system: r}},
		Before: func(s *conntest.Sim) {
			if r.Format == manifest.RPM {
				s.SetMachine(func(m *conntest.Machine) {
					m.Packages, m.OSRelease = "dnf", "ID=\"rocky\"\nVERSION_ID=\"9.4\"\n"
				})
			}
			s.AddPackage("bash", "5.2")
			s.EndJobsAtOnce()
			if before != nil {
				before(s)
			}
		},
	}
}

var carried = packages.Installed{Systems: []string{"debian-12", "rocky-9.4"}}

func packagesSteps(p packages.Installed) (install, remove steps.Step) {
	rs := []op.Resource{p}
	return op.Ensure("test.install-packages", rs), op.Remove("test.remove-packages", rs)
}

// one runs a test in a synctest bubble: jobs are polled every second.
func one(t *testing.T, name string, try func(*testing.T)) {
	t.Run(name, func(t *testing.T) { t.Parallel(); synctest.Test(t, try) })
}

func TestPackagesKeepTheirLaws(t *testing.T) {
	install, remove := packagesSteps(carried)
	for name, c := range map[string]struct {
		format string
		before func(*conntest.Sim)
	}{
		"nothing there":  {manifest.Deb, nil},
		"nothing of rpm": {manifest.RPM, nil},
		"some there":     {manifest.Deb, func(s *conntest.Sim) { s.AddPackage("libwrap", "7.6"); s.AddPackage("chrony", "4.3") }},
		"older ones":     {manifest.Deb, func(s *conntest.Sim) { s.AddPackage("socat", "1.7") }},
		"the other one":  {manifest.Deb, func(s *conntest.Sim) { s.AddPackage("ntpd", "1"); s.AddPackage("timesyncd", "252") }},
		"configuration":  {manifest.Deb, func(s *conntest.Sim) { s.AddPackage("socat", "1.7"); s.SetPackageState("socat", "config-files") }},
		"uploads":        {manifest.Deb, (*conntest.Sim).ForbidForwarding},
		"uploads of rpm": {manifest.RPM, (*conntest.Sim).ForbidForwarding},
		"a lock":         {manifest.Deb, func(s *conntest.Sim) { s.LockPackages("apt-get (process 7)", 20) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kase := packagesCase(t, repository(c.format), c.before)
			if name != "nothing there" && name != "uploads" { // the commands are the same ones
				kase.Every = 4
			}
			steptest.Ensure(t, kase, install, remove)
		})
	}
}

func TestNothingToInstall(t *testing.T) {
	c := packagesCase(t, repository(manifest.Deb), func(s *conntest.Sim) {
		for _, n := range []string{"socat", "ntpd", "mail-agent"} {
			s.AddPackage(n, "0")
		}
	})
	install, _ := packagesSteps(carried)
	s := c.Sim(t)
	if v, err := install.Precheck(t.Context(), c.NewHost(t, s, install)); err != nil || v != steps.Done {
		t.Errorf("%v, %v", v, err)
	}
}

// TestWhatOthersNeedStays: a user's package depends on one that kubexm installed.
func TestWhatOthersNeedStays(t *testing.T) {
	one(t, "stays", func(t *testing.T) {
		c := packagesCase(t, repository(manifest.Deb), nil)
		install, remove := packagesSteps(carried)
		s := c.Sim(t)
		must(t, install.Run(t.Context(), c.NewHost(t, s, install)))
		s.AddPackage("theirs", "1", "libwrap")
		must(t, remove.Run(t.Context(), c.NewHost(t, s, remove)))
		if s.PackageVersion("libwrap") == "" || s.PackageVersion("theirs") == "" {
			t.Error("what somebody needs went away")
		}
		for _, gone := range []string{"socat", "chrony", "mail-agent", "exim"} {
			if s.PackageVersion(gone) != "" {
				t.Errorf("%s is left", gone)
			}
		}
		if v, err := remove.Precheck(t.Context(), c.NewHost(t, s, remove)); err != nil || v != steps.Done {
			t.Errorf("a removal that cannot go on is not done: %v, %v", v, err)
		}
		s.SetPackage("theirs", "") // now nobody needs it
		must(t, remove.Run(t.Context(), c.NewHost(t, s, remove)))
		if s.PackageVersion("libwrap") != "" {
			t.Error("libwrap is left, though nobody needs it any more")
		}
		if left := s.Below("/var/lib"); slices.ContainsFunc(left, func(p string) bool { return strings.Contains(p, "kubexm") }) {
			t.Errorf("records are left: %q", left)
		}
	})
}

// TestWhatTheUserInstalledSinceStays: a package of the repository that a user installed
// after kubexm's installation.
func TestWhatTheUserInstalledSinceStays(t *testing.T) {
	one(t, "stays", func(t *testing.T) {
		r := repository(manifest.Deb)
		r.Packages = append(r.Packages, steptest.Package{Name: "htop", Version: "3"})
		c := packagesCase(t, r, nil)
		install, remove := packagesSteps(carried)
		s := c.Sim(t)
		must(t, install.Run(t.Context(), c.NewHost(t, s, install)))
		s.AddPackage("htop", "3")
		must(t, remove.Run(t.Context(), c.NewHost(t, s, remove)))
		if s.PackageVersion("htop") == "" || s.PackageVersion("socat") != "" {
			t.Errorf("htop %q, socat %q", s.PackageVersion("htop"), s.PackageVersion("socat"))
		}
	})
}

// TestMoreIsWanted: a later bundle requires more packages; a removal removes all of them.
func TestMoreIsWanted(t *testing.T) {
	one(t, "all goes", func(t *testing.T) {
		c := packagesCase(t, repository(manifest.Deb), nil)
		some := carried
		some.Pick = func(_ *steps.Host, want []string) []string { return want[:1] }
		first, _ := packagesSteps(some)
		install, remove := packagesSteps(carried)
		s := c.Sim(t)
		before := s.Snapshot()
		must(t, first.Run(t.Context(), c.NewHost(t, s, first)))
		middle := s.Snapshot()
		if s.PackageVersion("socat") == "" || s.PackageVersion("chrony") != "" {
			t.Fatalf("of the first list there are %v", middle)
		}
		h := c.NewHost(t, s, install)
		must(t, install.Run(t.Context(), h))
		must(t, install.Rollback(t.Context(), h))
		if d := conntest.Diff(middle, s.Snapshot()); d != "" {
			t.Errorf("a rollback undoes the second installation alone:\n%s", d)
		}
		must(t, install.Run(t.Context(), c.NewHost(t, s, install)))
		must(t, remove.Run(t.Context(), c.NewHost(t, s, remove)))
		if d := conntest.Diff(before, s.Snapshot()); d != "" {
			t.Errorf("a removal takes both:\n%s", d)
		}
	})
}

// TestAnInstallationThatFailsHalfWay: a rollback or a removal restores the host, and a
// second installation does not repair the package database.
func TestAnInstallationThatFailsHalfWay(t *testing.T) {
	r := repository(manifest.Deb)
	r.Packages[0].Script = "fails" // socat, after libwrap
	c := packagesCase(t, r, nil)
	install, remove := packagesSteps(carried)
	fail := func(t *testing.T) (*conntest.Sim, conntest.Snapshot, *steps.Host) {
		s := c.Sim(t)
		before := s.Snapshot()
		h := c.NewHost(t, s, install)
		err := install.Run(t.Context(), h)
		if err == nil || !strings.Contains(err.Error(), "exit 100: ") || !strings.Contains(err.Error(), "returned an error code (1)") {
			t.Fatalf("error is %v", err)
		}
		return s, before, h
	}
	one(t, "rolled back", func(t *testing.T) {
		s, before, h := fail(t)
		must(t, install.Rollback(t.Context(), h))
		if d := conntest.Diff(before, s.Snapshot()); d != "" {
			t.Error(d)
		}
	})
	one(t, "removed", func(t *testing.T) {
		s, before, _ := fail(t)
		must(t, remove.Run(t.Context(), c.NewHost(t, s, remove)))
		if d := conntest.Diff(before, s.Snapshot()); d != "" {
			t.Error(d)
		}
	})
	one(t, "not forced", func(t *testing.T) {
		s, _, _ := fail(t)
		_, err := install.Precheck(t.Context(), c.NewHost(t, s, install))
		if !errors.Is(err, runner.ErrPackagesBroken) || !strings.Contains(err.Error(), "socat is half-configured") ||
			!strings.Contains(strings.Join(steps.Advice(err), " "), "dpkg --configure -a") {
			t.Errorf("error is %v, advice %q", err, steps.Advice(err))
		}
	})
}

func TestPackagesThatCannotBeInstalled(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*conntest.Sim)
		want   error
		says   string
	}{
		"another system": {func(s *conntest.Sim) {
			s.SetMachine(func(m *conntest.Machine) { m.OSRelease = "ID=kylin\nVERSION_ID=V10\n" })
		}, nil, "the bundle has no packages of kylin-V10, only of debian-12, rocky-9.4"},
		"a derivative": {func(s *conntest.Sim) {
			s.SetMachine(func(m *conntest.Machine) { m.OSRelease = "ID=mint\nID_LIKE=debian\nVERSION_ID=12\n" })
		}, nil, "no packages of mint-12"},
		"zypper":            {func(s *conntest.Sim) { s.SetMachine(func(m *conntest.Machine) { m.Packages = "zypper" }) }, nil, "cannot be installed with zypper"},
		"a lock that stays": {func(s *conntest.Sim) { s.LockPackages("unattended-upgr (process 9)", 1000) }, runner.ErrPackagesLocked, "unattended-upgr (process 9) has the packages locked"},
		"a removal":         {func(s *conntest.Sim) { s.AddPackage("timesyncd", "252") }, runner.ErrPackagesRemove, "would remove timesyncd"},
		"broken":            {func(s *conntest.Sim) { s.SetPackageState("bash", "half-configured") }, runner.ErrPackagesBroken, "bash is half-configured"},
	} {
		one(t, name, func(t *testing.T) {
			kase := packagesCase(t, repository(manifest.Deb), c.before)
			install, _ := packagesSteps(carried)
			s := kase.Sim(t)
			before := s.Snapshot()
			h := kase.NewHost(t, s, install)
			err := install.Run(t.Context(), h)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || len(steps.Advice(err)) == 0 {
				t.Errorf("error is %v, advice %q", err, steps.Advice(err))
			}
			must(t, install.Rollback(t.Context(), h))
			if d := conntest.Diff(before, s.Snapshot()); d != "" {
				t.Errorf("it left:\n%s", d)
			}
		})
	}
}

// TestKilledInTheMiddle: the job of a killed run continues, and the next run waits for it.
func TestKilledInTheMiddle(t *testing.T) {
	one(t, "resumed", func(t *testing.T) {
		c := packagesCase(t, repository(manifest.Deb), nil)
		install, remove := packagesSteps(carried)
		s := c.Sim(t)
		before := s.Snapshot()
		for at := 1; len(s.Jobs()) == 0; at++ {
			h := c.NewHost(t, s, install)
			s.Break(conntest.Fault{At: at, After: true, Stay: true})
			err := install.Run(t.Context(), h)
			s.Mend()
			if err == nil {
				t.Fatal("there was no job to be found")
			}
		}
		must(t, install.Run(t.Context(), c.NewHost(t, s, install)))
		if v, err := install.Precheck(t.Context(), c.NewHost(t, s, install)); err != nil || v != steps.Done {
			t.Errorf("%v, %v", v, err)
		}
		must(t, remove.Run(t.Context(), c.NewHost(t, s, remove)))
		if d := conntest.Diff(before, s.Snapshot()); d != "" {
			t.Error(d)
		}
	})
}

// swapped is a bundle with the files of another one.
type swapped struct {
	steptest.Artifacts
	files steptest.Artifacts
}

func (s swapped) File(ctx context.Context, n manifest.Need, p manifest.Platform) (io.ReadCloser, manifest.Blob, error) {
	return s.files.File(ctx, n, p)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestAnotherRepositoryIsRefused: the host reads another repository than the bundle's.
func TestAnotherRepositoryIsRefused(t *testing.T) {
	one(t, "refused", func(t *testing.T) {
		c := packagesCase(t, repository(manifest.Deb), nil)
		install, _ := packagesSteps(carried)
		s := c.Sim(t)
		h := c.NewHost(t, s, install)
		forged := repository(manifest.Deb)
		forged.Packages[0].Version = "6.6.6"
		h.Artifacts = swapped{steptest.Artifacts{Repositories: map[string]steptest.Repository{"debian-12": repository(manifest.Deb)}},
			steptest.Artifacts{Repositories: map[string]steptest.Repository{"debian-12": forged}}}
		if err := install.Run(t.Context(), h); !errors.Is(err, runner.ErrPackagesForeign) {
			t.Errorf("error is %v", err)
		}
		if s.PackageVersion("socat") != "" {
			t.Error("it was installed")
		}
	})
}
