package steptest

import (
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// ExistingCluster returns a function that sets up an existing cluster on one host, as kubeadm
// leaves it, for steps that require one.
func ExistingCluster(c *manifest.Cluster) func(*conntest.Sim) {
	return func(s *conntest.Sim) { ExistingKube(c, s) }
}

// ExistingKube sets up an existing cluster on a host, and returns it for changes.
func ExistingKube(c *manifest.Cluster, s *conntest.Sim) *Kube {
	k := NewKube(c)
	k.stands = true
	k.On(s, k.master)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.found(s)
	k.coreDNS()
	for _, h := range c.Spec.Hosts[1:] {
		k.put(newObject("v1", "Node", "", h.Name))
	}
	return k
}

// ExistingKubeWith returns an existing cluster on its first control plane node, and all hosts
// with the programs to join it.
func ExistingKubeWith(t conntest.TB, c *manifest.Cluster) (*Kube, map[string]*conntest.Sim) {
	k := NewKube(c)
	k.stands = true
	for _, h := range c.Spec.Hosts {
		s := conntest.New(t)
		s.AddUnit("kubelet.service", "[Service]\nExecStart=/usr/local/bin/kubelet\n[Install]\nWantedBy=multi-user.target\n", false, true)
		k.On(s, h.Name)
	}
	k.found(k.first())
	k.coreDNS()
	return k, k.hosts
}
