package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExistingIsKept makes a cluster, and has install refuse what would harm it or what
// nothing would act on: another Kubernetes, another field, a worker gone from the
// config, a first master that is blank. Then it deletes the cluster without a host that
// has no power, and cleans that one once it has.
func TestExistingIsKept(t *testing.T) {
	s, config := newScenarioSite(t, 3, "existing.yaml")
	before := s.inventories(t)
	// Hosts of a lab share a kernel. Only one of them has on record what these were, and that may be
	// the one that is left out first.
	shared := strings.Fields(s.on(t, "h1", "for k in vm.overcommit_memory kernel.panic kernel.panic_on_oops; do echo $k=$(sysctl -n $k); done"))
	said(t, s.install(t, config), 0, "create of cluster site: done")
	said(t, s.install(t, config), 0, "0 steps ran")

	s.keepsWhatItIs(t)
	s.refusesAReplacedMaster(t, config)
	said(t, s.install(t, config), 0, "0 steps ran")
	s.smoke(t)
	s.goesOnWithoutPower(t, config)
	s.on(t, "h1", "sysctl -q -w "+strings.Join(shared, " "))
	s.nothingLeft(t)
	s.asBefore(t, before)
}

// keepsWhatItIs tries configs that differ from the cluster. The bundle is of the same
// Kubernetes: another one is refused before any bundle is looked into.
func (s *labSite) keepsWhatItIs(t testing.TB) {
	t.Helper()
	record := filepath.Join(s.dir, ".kubexm", "site", "applied", "config.yaml")
	applied := string(mustRead(t, record))
	for _, h := range s.Hosts {
		s.on(t, h.Name, "touch /root/marker; sleep 1")
	}
	newer := s.variant(t, "newer.yaml", "v1.32.2", "v1.33.1")
	more := s.variant(t, "more.yaml", "{version: v1.32.2,", "{version: v1.32.2, maxPods: 200,")
	less := s.variant(t, "less.yaml", "worker: [h2, h3]", "worker: [h2]")
	for _, elsewhere := range []bool{false, true} {
		if elsewhere {
			s.folder = t.TempDir()
		}
		said(t, s.kubexm(t, "preflight", "-f", newer), 3, "existing-cluster", "spec.kubernetes.version: the cluster has v1.32.2, the config has v1.33.1", "this version of kubexm does not upgrade clusters")
		said(t, s.install(t, more), 3, "h1, h2, h3", "spec.kubernetes.maxPods: the cluster has 110, the config has 200", "write 110 again", "install is refused: the cluster exists and stays as it is")
		said(t, s.install(t, less), 3, "spec.roleGroups.worker: the host has this role in the cluster, but not in the config")
	}
	s.folder = ""
	for _, h := range s.Hosts {
		if changed := s.on(t, h.Name, "find /etc/kubernetes /etc/containerd /etc/systemd /etc/hosts /usr/local/bin /var/lib/kubexm -newer /root/marker; rm /root/marker"); changed != "" {
			t.Errorf("%s: what was refused has changed %s", h.Name, changed)
		}
	}
	if now := string(mustRead(t, record)); now != applied {
		t.Errorf("what was refused is on record:\n%s", now)
	}
}

// refusesAReplacedMaster takes all of Kubernetes from the first master, as a machine has
// it that was exchanged, and brings it back.
func (s *labSite) refusesAReplacedMaster(t testing.TB, config string) {
	t.Helper()
	s.on(t, "h1", "systemctl stop kubelet; crictl ps -q | xargs -r crictl stop --timeout 0 >/dev/null; mv /etc/kubernetes /root/kubernetes.away")
	for _, elsewhere := range []bool{false, true} {
		if elsewhere {
			s.folder = t.TempDir()
		}
		said(t, s.install(t, config), 3, "is the first master and has no control plane of the existing cluster (known from h2, h3", "was its machine replaced?", "bring the machine back with its disk")
	}
	s.folder = ""
	s.on(t, "h1", "! test -e /etc/kubernetes && mv /root/kubernetes.away /etc/kubernetes && systemctl start kubelet")
	s.eventually(t, "h1", atHome+kubectl+"--request-timeout=10s wait --for=condition=Ready nodes --all --timeout=60s")
}

// goesOnWithoutPower: no installation without a host, and no deletion, until that is
// asked for. What stays on the host is remembered, and the next deletion takes it.
func (s *labSite) goesOnWithoutPower(t testing.TB, config string) {
	t.Helper()
	h, err := s.Host("h3")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Cut(h); err != nil {
		t.Fatal(err)
	}
	said(t, s.install(t, config), 3, "connectivity", "install is refused: it needs every host of the config, and cannot reach h3 ("+h.Address+")", "nothing was changed on any host")
	said(t, s.kubexm(t, "delete", "cluster", "-f", config, "--yes"), 3, "or continue without: --skip-host h3")
	said(t, s.kubexm(t, "delete", "cluster", "-f", config, "--yes", "--skip-host", "h9"), 2, "no host of the cluster is called h9: it has h1, h2, h3")
	said(t, s.kubexm(t, "delete", "cluster", "-f", config, "--yes", "--skip-host", "h3"), 0, "delete of cluster site: done", "left  h3 ("+h.Address+") was skipped and still has the kubelet", "left.json")
	for _, host := range []string{"h1", "h2"} {
		s.on(t, host, "! test -e /etc/kubernetes && ! test -e /var/lib/kubexm && ! test -e /var/lib/etcd && ! pgrep -x kubelet")
	}
	if err := s.Boot(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	s.on(t, "h3", "test -e /etc/kubernetes/kubelet.conf")
	said(t, s.kubexm(t, "delete", "cluster", "-f", config, "--yes"), 0, "delete of cluster site: done")
	if _, err := os.Stat(filepath.Join(s.dir, ".kubexm", "site", "left.json")); err == nil {
		t.Error("a host that is clean is still remembered")
	}
}
