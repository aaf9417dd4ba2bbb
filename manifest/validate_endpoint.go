package manifest

import (
	"slices"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/manifest/document"
)

// validateEndpoint holds the load balancer's parts against roles and addresses.
func (d *config) validateEndpoint(c *Cluster) {
	lb, cp, roles := c.Spec.LoadBalancer, c.Spec.ControlPlaneEndpoint, c.Spec.RoleGroups
	external, internal := lb.External.Type, lb.Internal.Type
	const ext, inn = "spec.loadBalancer.external.type", "spec.loadBalancer.internal.type"
	hosts := roles.Names(RoleLoadBalancer)
	ours := external == "kubexm-kh" || external == "kubexm-kn"
	switch {
	case !d.Sound(ext, "spec.roleGroups.loadbalancer"):
	case ours && len(hosts) == 0 && len(c.Spec.Hosts) > 0:
		d.Fail(ext, "name hosts in spec.roleGroups.loadbalancer", "is %s, and no host has the role loadbalancer", external)
	case external == "external" && len(hosts) > 0:
		d.Fail("spec.roleGroups.loadbalancer", "take the hosts out, or write spec.loadBalancer.external.type: kubexm-kh or kubexm-kn", "has hosts, and spec.loadBalancer.external.type is external: one that exists already")
	case !ours && len(hosts) > 0:
		d.Fail("spec.roleGroups.loadbalancer", "write spec.loadBalancer.external.type: kubexm-kh or kubexm-kn, or take the hosts out", "has hosts, and spec.loadBalancer.external.type is not written")
	}
	if external != "" && internal != "" && d.Sound(ext) {
		d.Fail(inn, "choose one of the two", "is %s, and the external load balancer is %s", internal, external)
	}
	known := d.Sound(ext, inn, "spec.loadBalancer.mode") // else what was meant is not known
	switch {
	case !known:
	case lb.Mode == "external" && external == "", lb.Mode == "internal" && internal == "":
		d.Fail("spec.loadBalancer.mode", "write spec.loadBalancer."+lb.Mode+".type", "is %s, and %s.type is not written", lb.Mode, lb.Mode)
	case lb.Mode == "none" && external+internal != "":
		d.Fail("spec.loadBalancer.mode", "leave mode out", "is none, and a type is written")
	}
	d.virtualIP(c, ours)
	if !known {
		return
	}
	d.apiServerPort(c)
	if masters := roles.Names(RoleMaster); len(masters) > 1 && lb.Mode == "none" && cp.Address == "" && !cp.ExternalDNS && d.Sound("spec.controlPlaneEndpoint", "spec.roleGroups.master") {
		d.Warn("spec.loadBalancer", "write external.type: external where a load balancer exists, or controlPlaneEndpoint.externalDNS where the site's name servers know the masters",
			"%d masters have no load balancer: when the first one is down, workers reach no API server", len(masters))
	}
}

// virtualIP checks that there is an address where one is needed, and that it is free.
func (d *config) virtualIP(c *Cluster, ours bool) {
	lb, cp := c.Spec.LoadBalancer, c.Spec.ControlPlaneEndpoint
	if !d.Sound("spec.controlPlaneEndpoint.address") {
		return
	}
	needs := []struct{ at, kind string }{
		{"spec.loadBalancer.external.type", choose(ours || lb.External.Type == "external", lb.External.Type)},
		{"spec.loadBalancer.internal.type", choose(lb.Internal.Type == "kube-vip", lb.Internal.Type)},
	}
	for _, n := range needs {
		if n.kind != "" && cp.Address == "" && !cp.ExternalDNS {
			d.Fail(n.at, "write spec.controlPlaneEndpoint.address", "is %s, which needs a virtual IP, and there is none", n.kind)
		}
	}
	if cp.ExternalDNS && cp.Address != "" {
		d.Fail("spec.controlPlaneEndpoint.externalDNS", "leave the address empty, or externalDNS false", "is true, and the address is %s", cp.Address)
	}
	for i, h := range c.Spec.Hosts {
		if cp.Address != "" && h.has(cp.Address) && (ours || lb.Internal.Type == "kube-vip") {
			d.Fail("spec.controlPlaneEndpoint.address", "choose an address that no host has", "%s is an address of %s", cp.Address, document.Indexed("spec.hosts", i))
		}
		if cp.Address != "" && h.has(cp.Address) && lb.External.Type == "external" && cp.Port == behindBalancer && c.Spec.RoleGroups.Has(RoleMaster, h.Name) {
			d.Fail("spec.controlPlaneEndpoint.address", "write the load balancer's address, or leave spec.loadBalancer out",
				"%s is an address of the master %s, whose API server listens on port %d itself", cp.Address, h.Name, behindBalancer)
		}
	}
}

// directAddress checks that an address which nothing holds for the masters is
// one of theirs: clients of any other would wait for ever.
func (d *config) directAddress(c *Cluster) {
	address := c.Spec.ControlPlaneEndpoint.Address
	if masters := c.HostsWith(RoleMaster); c.Spec.LoadBalancer.Mode != "none" || c.Spec.ControlPlaneEndpoint.ExternalDNS || address == "" || len(masters) == 0 ||
		slices.ContainsFunc(masters, func(h Host) bool { return h.has(address) }) {
		return
	}
	d.Fail("spec.controlPlaneEndpoint.address", "leave it out, or write what holds it in spec.loadBalancer: external.type: external where a load balancer exists",
		"%s is an address of no master, and there is no load balancer", address)
}

// apiServerPort checks that nothing else on a master listens where its API server will.
func (d *config) apiServerPort(c *Cluster) {
	const path = "spec.controlPlaneEndpoint.port"
	port, masters := c.APIServerPort(), c.Spec.RoleGroups.Names(RoleMaster)
	who := portsOfMasters[port]
	for _, h := range c.Spec.Hosts {
		if h.Port == port && slices.Contains(masters, h.Name) {
			who = "the SSH server of " + h.Name
		}
	}
	if r := c.Spec.Registry; r.Type == "registry" {
		_, own, _ := strings.Cut(r.PrivateRegistry, ":")
		if own == "" {
			own = "443"
		}
		if own == strconv.Itoa(port) && slices.ContainsFunc(c.Spec.RoleGroups.Names(RoleRegistry), func(n string) bool { return slices.Contains(masters, n) }) {
			who = "the registry"
		}
	}
	if who != "" {
		d.Fail(path, "choose another port, as 6443 is", "%d is where %s listens on a master", port, who)
	}
}

func (d *config) validateEtcd(c *Cluster) {
	e := c.Spec.Etcd
	if d.Sound("spec.etcd.type") {
		switch {
		case e.Type == "external" && len(e.External.Endpoints) == 0:
			d.Fail("spec.etcd.external.endpoints", "write the addresses of its members, as in https://192.168.6.6:2379", "is missing, and spec.etcd.type is external")
		case e.Type != "external" && d.Written("spec.etcd.external"):
			d.Fail("spec.etcd.external", "write type: external, or leave it out", "means nothing where spec.etcd.type is %s", e.Type)
		case e.Type == "external" && e.Version != "":
			d.Warn("spec.etcd.version", "leave it out", "means nothing where spec.etcd.type is external")
		}
	}
	if (e.External.CertFile == "") != (e.External.KeyFile == "") {
		d.Fail("spec.etcd.external", "write both certFile and keyFile, or neither", "has one of certFile and keyFile")
	}
	for i, a := range e.External.Endpoints {
		if strings.HasPrefix(a, "https://") && e.External.CAFile == "" && d.Sound("spec.etcd.external.caFile") {
			d.Fail(document.Indexed("spec.etcd.external.endpoints", i), "write spec.etcd.external.caFile", "speaks TLS, and there is no caFile to check it with")
			break
		}
	}
	if d.Sound("spec.etcd.heartbeatInterval") && e.ElectionTimeout < 5*e.HeartbeatInterval {
		at := "spec.etcd.electionTimeout"
		if !d.Written(at) {
			at = "spec.etcd.heartbeatInterval"
		}
		d.Fail(at, "make electionTimeout at least five times heartbeatInterval", "electionTimeout of %d ms is under five times heartbeatInterval of %d ms", e.ElectionTimeout, e.HeartbeatInterval)
	}
	if e.QuotaBackendBytes > 8<<30 {
		d.Warn("spec.etcd.quotaBackendBytes", "write at most 8589934592", "%d is above 8 GiB, which etcd warns of", e.QuotaBackendBytes)
	}
}
