package installer_test

import (
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// neglected puts on a host what makes it ready takes away.
func neglected(sim *conntest.Sim) {
	sim.SetHostname("unnamed-" + sim.Hostname())
	sim.AddFile("/etc/hosts", "127.0.0.1 localhost\n127.0.1.1 "+sim.Hostname()+"\n", 0o644)
	sim.AddFile("/etc/fstab", "UUID=1 / ext4 defaults 0 1\n/dev/vdb none swap sw 0 0\n", 0o644)
	sim.AddSwap("/dev/vdb", "-2")
	sim.SetMachine(func(m *conntest.Machine) { m.SELinux = "Enforcing" })
	sim.AddFile("/etc/selinux/config", "SELINUX=enforcing\nSELINUXTYPE=targeted\n", 0o644)
	sim.AddUFW(true)
	sim.AddUnit("firewalld.service", "[Service]\nExecStart=/usr/sbin/firewalld\n[Install]\nWantedBy=multi-user.target\n", true, true)
}

// TestHostsArePreparedAndGivenBack alone, and with a cluster on them.
func TestHostsArePreparedAndGivenBack(t *testing.T) {
	s := newSite(t, "site")
	for _, sim := range s.sims {
		neglected(sim)
	}
	first := s.state(true)
	s.must(pipeline.Prepare, "a preparation")
	ready := s.state(true)
	for name, sim := range s.sims {
		if on := len(sim.Swaps()) > 0; sim.Hostname() != name || on == isNode(s, name) || sim.Unit("firewalld.service").Active {
			t.Errorf("%s is %s, swaps %t, firewalld %t", name, sim.Hostname(), on, sim.Unit("firewalld.service").Active)
		}
	}
	s.must(pipeline.Prepare, "a second preparation")
	s.same("a second preparation changes nothing", ready, s.state(true))
	s.must(pipeline.Restore, "a restoration")
	s.same("a restoration gives back what was there", first, s.state(true))

	s.must(pipeline.Prepare, "a preparation before a creation")
	s.must(pipeline.Create, "a creation")
	if err := s.run(pipeline.Restore, nil); err == nil || !strings.Contains(err.Error(), "containerd.service of the cluster is installed there") {
		t.Errorf("a restoration below a cluster: %v", err)
	}
	s.must(pipeline.Delete, "a deletion")
	s.same("a deletion gives back what was there before the preparation", first, s.state(true))
}

// isNode tells whether a host runs a kubelet.
func isNode(s *site, name string) bool {
	for _, role := range []string{"master", "worker"} {
		for _, h := range s.cluster.HostsWith(role) {
			if h.Name == name {
				return true
			}
		}
	}
	return false
}
