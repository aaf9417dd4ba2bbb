package steptest

import (
	"strings"

	"github.com/mensylisir/kubexm/steps/connector"
)

// initPhase simulates the one phase of `kubeadm init` that is run alone.
func (k *Kube) initPhase(c call) connector.Result {
	switch {
	case strings.Join(c.words, " ") != "init phase addon coredns":
		return failed(1, "kube: nobody taught me kubeadm %s", strings.Join(c.words, " "))
	case c.sim.Read(c.flags["--config"]) == "":
		return failed(1, "unable to read config from %q", c.flags["--config"])
	case !k.reached(c):
		return failed(1, "error execution phase addon/coredns: dial tcp: connect: connection refused")
	case !k.goesOn(c.host, "init: addon/coredns"):
		return killed
	}
	k.coreDNS()
	return prints("[addons] Applied essential addon: CoreDNS\n")
}

// coreDNS creates the objects of CoreDNS.
func (k *Kube) coreDNS() {
	k.put(merged(newObject("v1", "ConfigMap", "kube-system", "coredns"), Object{"data": Object{"Corefile": "kubeadm's own\n"}}))
	k.put(merged(newObject("apps/v1", "Deployment", "kube-system", "coredns"), Object{"spec": Object{"replicas": 2.0}}))
}
