package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/site"
	"github.com/mensylisir/kubexm/manifest"
)

// TestHostsOfABundleAreAskedAbout: who sits at a terminal agrees, or nobody is dialed.
func TestHostsOfABundleAreAskedAbout(t *testing.T) {
	c := &manifest.Cluster{}
	c.Metadata.Name = "demo"
	for i := range 12 {
		c.Spec.Hosts = append(c.Spec.Hosts, manifest.Host{Name: fmt.Sprintf("n%d", i), Address: fmt.Sprintf("192.0.2.%d", i+1)})
	}
	c.Spec.Hosts[0].JumpHost = &manifest.JumpHost{Address: "192.0.2.99"}
	for answer, agrees := range map[string]bool{"y": true, "YES": true, "n": false, "": false, "yesterday": false} {
		master, slave := pseudoTerminal(t)
		if _, err := master.WriteString(answer + "\n"); err != nil {
			t.Fatal(err)
		}
		var screen bytes.Buffer
		a := &app{in: slave, err: &screen}
		err := a.confirmHosts(t.Context(), &siteFlags{}, carried(c, t.TempDir(), ""))
		if (err == nil) != agrees {
			t.Errorf("%q: %v", answer, err)
		}
		for _, want := range []string{"jump host (192.0.2.99:22), n0 (192.0.2.1:22), n1", "and 3 more", "[y/N]"} {
			if !strings.Contains(screen.String(), want) {
				t.Errorf("%q is not in %q", want, screen.String())
			}
		}
	}
	// A workdir that knows them is not asked about; nor is who names the config.
	workdir := t.TempDir()
	a := &app{in: strings.NewReader("")}
	if err := a.confirmHosts(t.Context(), &siteFlags{}, carried(c, workdir, "")); err == nil {
		t.Error("without a terminal and without --yes hosts are dialed")
	}
	var seen []string
	for _, h := range append(c.Spec.Hosts, manifest.Host{Address: "192.0.2.99"}) {
		seen = append(seen, h.Address+":22")
	}
	if err := os.MkdirAll(filepath.Join(workdir, ".kubexm", "demo"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(workdir, ".kubexm", "demo", "dialed"), []byte(strings.Join(seen, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if left, err := installer.UnknownHosts(workdir, c); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	for _, x := range []struct {
		s   *siteRun
		yes bool
	}{{carried(c, workdir, ""), false}, {carried(c, t.TempDir(), ""), true}, {carried(c, t.TempDir(), "config.yaml"), false}} {
		if err := a.confirmHosts(t.Context(), &siteFlags{yes: x.yes}, x.s); err != nil {
			t.Error(err)
		}
	}
}

// carried is a run for a cluster out of a bundle, or out of a config.
func carried(c *manifest.Cluster, workdir, config string) *siteRun {
	return &siteRun{Site: &site.Site{Request: site.Request{Options: installer.Options{Cluster: c, Base: workdir}, Archive: "demo.tar.zst", Config: config}}}
}

func pseudoTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slave.Close() })
	return master, slave
}
