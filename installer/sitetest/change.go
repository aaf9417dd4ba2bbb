package sitetest

import (
	"fmt"
	"maps"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// addHost adds a blank machine to the site.
func (s *Site) addHost(h manifest.Host) {
	i := len(s.Sims)
	sim := conntest.New(s.T)
	sim.ShareContents(s.contents)
	sim.SetHostname(h.Name)
	sim.SetMachine(func(m *conntest.Machine) {
		m.Machine = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[h.Arch]
		m.Addresses = []string{fmt.Sprintf("192.0.2.%d/24", (11+i)%255)}
		if s.change != nil {
			s.change(h, m)
		}
	})
	s.Kube.On(sim, h.Name)
	steptest.LoadBalancers(sim)
	s.Sims[h.Name] = sim
}

// Edit replaces the site's config, as if a user edited it between two runs. A host that is new
// in it is a blank machine.
func (s *Site) Edit(config string) {
	s.T.Helper()
	c, problems := manifest.Decode(strings.NewReader(config))
	if err := problems.Err(); err != nil {
		s.T.Fatal(err)
	}
	for _, h := range c.Spec.Hosts {
		if s.Sims[h.Name] == nil {
			s.addHost(h)
		}
	}
	if s.Kube.DataDir == "" {
		s.Kube.DataDir = s.Cluster.Spec.Etcd.DataDir
	}
	*s.Cluster = *c // the simulated programs refer to the cluster by this pointer
}

// Replace puts a blank machine in the place of a host.
func (s *Site) Replace(host string) {
	s.T.Helper()
	for _, h := range s.Cluster.Spec.Hosts {
		if h.Name == host {
			delete(s.Sims, host)
			s.addHost(h)
			return
		}
	}
	s.T.Fatalf("no host %s", host)
}

// components are the versions that the bundle contains.
func (s *Site) components() map[string]string {
	out := maps.Clone(s.Components)
	if out == nil {
		out = map[string]string{}
	}
	out["kubernetes"] = s.Cluster.Spec.Kubernetes.Version
	return out
}

// applied returns what the cluster records about a run; public returns its config without secrets.
func (s *Site) applied(public func() ([]byte, error)) steps.Applied {
	config, err := public()
	if err != nil {
		s.T.Errorf("the config without its secrets: %v", err)
	}
	const lock = "kind: Lock\n"
	return steps.Applied{
		Config: config, Lock: []byte(lock), LockDigest: digest.FromString(lock).String(), Serial: "1", Set: s.Cluster.Spec.Kubernetes.Version,
		Components: s.components(), Operation: s.operation, Away: s.Skip,
	}
}

// PowerOff switches a host off: it is unreachable, and nothing runs on it.
func (s *Site) PowerOff(host string) {
	sim := s.Sims[host]
	sim.Break(conntest.Fault{At: 1, Stay: true})
	for _, unit := range []string{part.RuntimeOf(s.Cluster).Unit, "kubelet.service", "etcd.service"} { // units that start at boot
		if sim.Unit(unit).Active {
			sim.KillUnit(unit)
		}
	}
}

// PowerOn switches it on again.
func (s *Site) PowerOn(host string) {
	sim := s.Sims[host]
	sim.Mend()
	for _, unit := range []string{part.RuntimeOf(s.Cluster).Unit, "kubelet.service", "etcd.service"} { // units that start at boot
		if sim.Unit(unit).Exists {
			sim.StartUnit(unit)
		}
	}
}
