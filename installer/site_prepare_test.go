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
	t.Parallel()
	s := newSite(t, "site")
	for _, sim := range s.Sims {
		neglected(sim)
	}
	first := s.State(true)
	s.Must(pipeline.Prepare, "a preparation")
	ready := s.State(true)
	for name, sim := range s.Sims {
		if on := len(sim.Swaps()) > 0; sim.Hostname() != name || on == isNode(s, name) || sim.Unit("firewalld.service").Active {
			t.Errorf("%s is %s, swaps %t, firewalld %t", name, sim.Hostname(), on, sim.Unit("firewalld.service").Active)
		}
	}
	s.Must(pipeline.Prepare, "a second preparation")
	s.Same("a second preparation changes nothing", ready, s.State(true))
	s.Must(pipeline.Restore, "a restoration")
	s.Same("a restoration gives back what was there", first, s.State(true))

	s.Must(pipeline.Prepare, "a preparation before a creation")
	s.Must(pipeline.Create, "a creation")
	if err := s.Run(pipeline.Restore, nil); err == nil || !strings.Contains(err.Error(), "containerd.service of the cluster is installed on this host") {
		t.Errorf("a restoration below a cluster: %v", err)
	}
	s.Must(pipeline.Delete, "a deletion")
	s.Same("a deletion gives back what was there before the preparation", first, s.State(true))
}

// isNode reports whether a host runs a kubelet.
func isNode(s *site, name string) bool {
	for _, role := range []string{"master", "worker"} {
		for _, h := range s.Cluster.HostsWith(role) {
			if h.Name == name {
				return true
			}
		}
	}
	return false
}
