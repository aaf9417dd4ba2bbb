package e2e

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/testdata/lab"
	"github.com/mensylisir/kubexm/testdata/lab/components"
	"github.com/mensylisir/kubexm/testdata/lab/mirror"
)

// newFamilies brings up a host of every root, and builds the bundle for
// testdata/hosts.yaml with packages for each.
func newFamilies(t *testing.T) *labSite {
	t.Helper()
	l := lab.Start(t, len(lab.Roots), lab.WithRoots(lab.Roots...), lab.Alone()) // inventories are compared
	l.Inside(netip.MustParsePrefix("10.202.0.0/20"))                            // of testdata/hosts.yaml
	cache, err := components.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/hosts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := &labSite{Lab: l, dir: t.TempDir(), cache: cache, config: l.Config(string(text))}
	s.write(t, "config.yaml", s.config)

	rpms := l.Hosts[slices.Index(lab.Roots, lab.RPM)].Rootfs + ".rpms"
	key, err := os.ReadFile(filepath.Join(rpms, "RPM-GPG-KEY-kubexmlab"))
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, "RPM-GPG-KEY-kubexmlab", string(key))
	s.write(t, "lab.repo", "[lab]\nname=lab\nbaseurl=https://rpms.lab.test/$releasever/$basearch\ngpgcheck=0\nrepo_gpgcheck=1\n")
	folders := map[string]string{"rpms.lab.test/9/x86_64": rpms}
	for name, release := range map[string]string{"lab.list": "12", "lab-13.list": "13"} {
		m := mirror.Release(cache, release)
		lines, err := m.Sources()
		if err != nil {
			t.Fatal(err)
		}
		s.write(t, name, strings.Join(lines, "\n")+"\n")
		folders[m.Address()] = m.Files()
	}

	up, err := lab.NewUpstream(t.Context(), lab.Source{Config: filepath.Join(s.dir, "config.yaml"), Root: "../..", Cache: s.cache, Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	for address, folder := range folders {
		if err := up.Folder(address, folder); err != nil {
			t.Fatal(err)
		}
	}
	at := listen(t)
	serve(t, at, up.Run)
	s.up = &site{dir: s.dir}
	if s.up.paths, err = up.WriteFiles(s.dir, "http://"+at.Addr().String()); err != nil {
		t.Fatal(err)
	}
	s.bundle = s.build(t, "config.yaml")
	return s
}

// TestHostsOfEachFamily makes hosts of three distributions ready, two releases of
// Debian and one of rpm packages, and gives them back.
func TestHostsOfEachFamily(t *testing.T) {
	s := newFamilies(t)
	config := filepath.Join(s.dir, "config.yaml")
	s.factsAreTrue(t)

	// The lab's own distribution is in no table of supported ones.
	r := s.kubexm(t, "preflight", "-f", config, "--bundle", s.bundle, "--allow-unsigned")
	said(t, r, 0, "h3", `the operating system "kubexmlab 9" is not supported`)
	if n := strings.Count(r.stdout+r.stderr, "is not supported"); n != 1 {
		t.Errorf("%d hosts are not supported", n)
	}
	if !t.Run("prepared badly", func(t *testing.T) { s.preparedBadly(t, config) }) {
		t.FailNow() // they may be bad still
	}

	s.neglect(t)
	before := s.inventories(t)
	server := strings.TrimSuffix(s.Hosts[0].Address, "1") // the gateway's, which is the lab's name server
	config = s.variant(t, "resolves.yaml", "  extra:\n", "  extra:\n    resolves: ["+server+"]\n")
	prepare := []string{"hosts", "prepare", "-f", config, "--bundle", s.bundle, "--allow-unsigned"}
	said(t, s.kubexm(t, prepare...), 0, "prepare of cluster site: done")
	s.areReady(t)
	s.packagesAreThere(t)
	said(t, s.kubexm(t, prepare...), 0, "0 steps ran")
	said(t, s.kubexm(t, "hosts", "restore", "-f", config, "--bundle", s.bundle, "--allow-unsigned", "--yes"), 0, "restore of cluster site: done")
	s.packagesAreGone(t)
	s.asBefore(t, before)
}

// TestFamiliesInOneCluster makes a cluster of them, and takes it away again.
func TestFamiliesInOneCluster(t *testing.T) {
	s := newFamilies(t)
	config := filepath.Join(s.dir, "config.yaml")
	for _, name := range []string{"h1", "h2"} { // the root's chrony is off for systemd alone; its links of init.d say so too after this
		s.on(t, name, "systemctl disable -q chrony")
	}
	before := s.inventories(t)
	said(t, s.install(t, config), 0, "create of cluster site: done")
	s.packagesAreThere(t)
	s.smoke(t)
	said(t, s.install(t, config), 0, "0 steps ran")

	// A worker of either new kind comes back after its power was cut.
	for _, name := range []string{"h2", "h3"} {
		h, err := s.Host(name)
		if err != nil {
			t.Fatal(err)
		}
		s.on(t, name, "sync")
		cut := time.Now()
		if err := s.Cut(h); err != nil {
			t.Fatal(err)
		}
		if err := s.Boot(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		s.comesUp(t, name, cut)
	}
	s.smoke(t)

	s.deleted(t, config)
	s.packagesAreGone(t)
	s.asBefore(t, before)
}

// factsAreTrue compares what kubexm is told of each host with what that is.
func (s *labSite) factsAreTrue(t *testing.T) {
	t.Helper()
	for i, want := range []struct {
		id, release, tool string
		systemd           int
	}{
		{"debian", "12", "apt-get", 252}, {"debian", "13", "apt-get", 257}, {"kubexmlab", "9", "dnf", 252},
	} {
		p := &packageHost{Lab: s.Lab, host: &s.Hosts[i], user: lab.RootUser}
		f := p.hands(t).Facts
		if f.OS.ID != want.id || f.OS.VersionID != want.release || f.PackageTool != want.tool || f.Systemd != want.systemd {
			t.Errorf("%s: %s %s with %s and systemd %d, want %+v", p.host.Name, f.OS.ID, f.OS.VersionID, f.PackageTool, f.Systemd, want)
		}
		if f.Hostname != p.host.Name || f.Init != "systemd" || f.CgroupV2 || f.Arch != "amd64" || f.SELinux == "enforcing" || len(f.Firewalls) > 0 || f.Default == "" {
			t.Errorf("%s: %+v", p.host.Name, f)
		}
		id := s.on(t, p.host.Name, "cat /etc/machine-id; systemctl is-system-running")
		if id != f.MachineID+"\nrunning" {
			t.Errorf("%s: machine id %s and not %s", p.host.Name, f.MachineID, id)
		}
	}
}

// programs are of packages that came to all hosts.
const programs = "ipvsadm iscsiadm mount.nfs tcpdump"

// packagesAreThere asks each host's own database, and the programs.
func (s *labSite) packagesAreThere(t *testing.T) {
	t.Helper()
	for _, h := range s.Hosts {
		s.on(t, h.Name, "for p in conntrack socat ipset ebtables chronyd "+programs+"; do command -v $p >/dev/null || { echo no $p; exit 1; }; done; conntrack --version")
	}
	s.on(t, "h3", "rpm -q conntrack-tools socat ipset iptables-ebtables chrony bash-completion nfs-utils iscsi-initiator-utils ipvsadm tcpdump && rpm -V conntrack-tools socat ipvsadm")
	if got := s.on(t, "h3", "dnf -q --disablerepo='*' repoquery --unsatisfied; ls /etc/yum.repos.d; ls /run/kubexm /var/lib/kubexm/site/packages 2>/dev/null || true"); strings.Contains(got, "repo") {
		t.Errorf("h3: %s", got)
	}
}

func (s *labSite) packagesAreGone(t *testing.T) {
	t.Helper()
	for _, h := range s.Hosts {
		s.on(t, h.Name, "for p in "+programs+"; do ! command -v $p || exit 1; done")
	}
	s.on(t, "h3", "for p in conntrack socat ipset ebtables chronyd; do ! command -v $p || exit 1; done; ! rpm -qa | grep -E '^(chrony|conntrack|nfs-utils|rpcbind)'")
}

// comesUp waits until a node whose power was cut runs its pods again: for some time
// the API server still tells of it as it was.
func (s *labSite) comesUp(t *testing.T, node string, cut time.Time) {
	t.Helper()
	for until := time.Now().Add(3 * time.Minute); ; time.Sleep(time.Second) {
		began := s.kubectl(t, "get", "pods", "-l", "app=smoke", "--field-selector", "spec.nodeName="+node, "-o", "jsonpath={.items[0].status.containerStatuses[0].state.running.startedAt}")
		if at, err := time.Parse(time.RFC3339, began); err == nil && at.After(cut) {
			t.Logf("%s runs its pods again, %s after its power was cut", node, time.Since(cut).Round(time.Second))
			return
		}
		if time.Now().After(until) {
			t.Fatalf("%s does not run its pods again, the last since %s:\n%s", node, began, s.on(t, node, "systemctl is-active kubelet containerd; crictl ps -a; journalctl -q --no-pager -n 60 -u kubelet"))
		}
	}
}
