package manifest

import (
	"slices"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/manifest/document"
)

// validateEndpoint checks the load balancer against roles and addresses.
func (d *config) validateEndpoint(c *Cluster) {
	lb, cp, roles := c.Spec.LoadBalancer, c.Spec.ControlPlaneEndpoint, c.Spec.RoleGroups
	external, internal := lb.External.Type, lb.Internal.Type
	const ext, inn = "spec.loadBalancer.external.type", "spec.loadBalancer.internal.type"
	hosts := roles.Names(RoleLoadBalancer)
	ours := external == "kubexm-kh" || external == "kubexm-kn"
	switch {
	case !d.Valid(ext, "spec.roleGroups.loadbalancer"):
	case ours && len(hosts) == 0 && len(c.Spec.Hosts) > 0:
		d.Fail(ext, "list hosts in spec.roleGroups.loadbalancer", "is %s, but no host has the role loadbalancer", external)
	case external == "external" && len(hosts) > 0:
		d.Fail("spec.roleGroups.loadbalancer", "remove the hosts, or write spec.loadBalancer.external.type: kubexm-kh or kubexm-kn", "has hosts, but spec.loadBalancer.external.type is external: an existing load balancer")
	case !ours && len(hosts) > 0:
		d.Fail("spec.roleGroups.loadbalancer", "write spec.loadBalancer.external.type: kubexm-kh or kubexm-kn, or remove the hosts", "has hosts, but spec.loadBalancer.external.type is not set")
	}
	if external != "" && internal == "kube-vip" && d.Valid(ext) {
		d.Fail(inn, "choose one of the two", "is %s, but the external load balancer is %s", internal, external)
	}
	if d.Valid(ext, inn) && (internal == "haproxy" || internal == "nginx") {
		d.onWorkers(c, internal, ours)
	}
	known := d.Valid(ext, inn, "spec.loadBalancer.mode") // otherwise the intended load balancer is unknown
	switch {
	case !known:
	case lb.Mode == "external" && external == "", lb.Mode == "internal" && internal == "":
		d.Fail("spec.loadBalancer.mode", "write spec.loadBalancer."+lb.Mode+".type", "is %s, but %s.type is not set", lb.Mode, lb.Mode)
	case lb.Mode == "internal" && external != "":
		d.Fail("spec.loadBalancer.mode", "leave mode out", "is internal, but external.type is set")
	case lb.Mode == "none" && external+internal != "":
		d.Fail("spec.loadBalancer.mode", "leave mode out", "is none, but a type is set")
	}
	d.virtualIP(c, ours)
	if !known {
		return
	}
	d.apiServerPort(c)
	if masters := roles.Names(RoleMaster); len(masters) > 1 && lb.Mode == "none" && cp.Address == "" && !cp.ExternalDNS && d.Valid("spec.controlPlaneEndpoint", "spec.roleGroups.master") {
		d.Warn("spec.loadBalancer", "write external.type: external if a load balancer exists, or controlPlaneEndpoint.externalDNS if the site's name servers resolve the domain to the masters",
			"%d masters have no load balancer: if the first master is down, workers cannot reach an API server", len(masters))
	}
}

// lowestUnprivileged is the lowest TCP port that a program without privileges may listen on
// (net.ipv4.ip_unprivileged_port_start, ip_local_port_range of Linux's ip-sysctl).
const lowestUnprivileged = 1024

// onWorkers checks the config of a load balancer on each worker.
func (d *config) onWorkers(c *Cluster, program string, ours bool) {
	const inn = "spec.loadBalancer.internal.type"
	cp, roles := c.Spec.ControlPlaneEndpoint, c.Spec.RoleGroups
	if cp.ExternalDNS {
		d.Fail(inn, "write externalDNS: false, or leave the load balancer out",
			"is %s on each worker, but the site's name servers resolve the domain: clients on a worker would not connect to its load balancer", program)
	}
	if cp.Address != "" && c.Spec.LoadBalancer.External.Type == "" && d.Valid("spec.controlPlaneEndpoint.address") {
		d.Fail("spec.controlPlaneEndpoint.address", "leave it out, or configure spec.loadBalancer.external",
			"is not used: the load balancer is %s on each worker, and there is no external one", program)
	}
	if cp.Port < lowestUnprivileged && d.Valid("spec.controlPlaneEndpoint.port") {
		d.Fail("spec.controlPlaneEndpoint.port", "write 6443",
			"is %d, but %s on each worker runs without privileges and cannot listen below %d", cp.Port, program, lowestUnprivileged)
	}
	masters, workers := roles.Names(RoleMaster), roles.Names(RoleWorker)
	if len(c.Spec.Hosts) == 0 {
		return
	}
	if len(workers) > 0 && !slices.ContainsFunc(workers, func(w string) bool { return !slices.Contains(masters, w) }) {
		d.Warn(inn, "leave it out", "has no effect: every worker is a master, whose clients use its own API server")
	}
	for _, b := range roles.Names(RoleLoadBalancer) {
		if ours && slices.Contains(workers, b) && !slices.Contains(masters, b) {
			d.Fail("spec.roleGroups.loadbalancer", "use a host that is not a worker, or leave spec.loadBalancer.internal out",
				"%s is a worker too: %s on it and the load balancer in front of the API servers would use the same port", b, program)
		}
	}
}

// virtualIP checks that a required virtual IP is set, and that no host uses it.
func (d *config) virtualIP(c *Cluster, ours bool) {
	lb, cp := c.Spec.LoadBalancer, c.Spec.ControlPlaneEndpoint
	if !d.Valid("spec.controlPlaneEndpoint.address") {
		return
	}
	needs := []struct{ at, kind string }{
		{"spec.loadBalancer.external.type", choose(ours || lb.External.Type == "external", lb.External.Type)},
		{"spec.loadBalancer.internal.type", choose(lb.Internal.Type == "kube-vip", lb.Internal.Type)},
	}
	for _, n := range needs {
		if n.kind != "" && cp.Address == "" && !cp.ExternalDNS {
			d.Fail(n.at, "write spec.controlPlaneEndpoint.address", "is %s, which requires a virtual IP, but none is set", n.kind)
		}
	}
	held := choose(ours, lb.External.Type) + choose(lb.Internal.Type == "kube-vip" && lb.External.Type == "", lb.Internal.Type)
	if cp.ExternalDNS && held != "" {
		d.Fail("spec.controlPlaneEndpoint.externalDNS", "write externalDNS: false and spec.controlPlaneEndpoint.address",
			"is true, but the load balancer is %s, which requires a virtual IP", held)
	} else if cp.ExternalDNS && cp.Address != "" {
		d.Fail("spec.controlPlaneEndpoint.externalDNS", "leave the address empty, or write externalDNS: false", "is true, but the address is %s", cp.Address)
	}
	for i, h := range c.Spec.Hosts {
		if cp.Address != "" && h.has(cp.Address) && (ours || lb.Internal.Type == "kube-vip") {
			d.Fail("spec.controlPlaneEndpoint.address", "choose an address that no host has", "%s is an address of %s", cp.Address, document.Indexed("spec.hosts", i))
		}
		if cp.Address != "" && h.has(cp.Address) && lb.External.Type == "external" && cp.Port == behindBalancer && c.Spec.RoleGroups.Has(RoleMaster, h.Name) {
			d.Fail("spec.controlPlaneEndpoint.address", "write the load balancer's address, or leave spec.loadBalancer out",
				"%s is an address of the master %s, whose API server itself listens on port %d", cp.Address, h.Name, behindBalancer)
		}
	}
}

// directAddress checks that an endpoint address without a load balancer is the address of a
// master: clients could not connect to any other address.
func (d *config) directAddress(c *Cluster) {
	address := c.Spec.ControlPlaneEndpoint.Address
	if masters := c.HostsWith(RoleMaster); c.Spec.LoadBalancer.Mode != "none" || c.Spec.ControlPlaneEndpoint.ExternalDNS || address == "" || len(masters) == 0 ||
		slices.ContainsFunc(masters, func(h Host) bool { return h.has(address) }) {
		return
	}
	d.Fail("spec.controlPlaneEndpoint.address", "leave it out, or configure spec.loadBalancer: external.type: external for an existing load balancer",
		"%s is not the address of a master, and there is no load balancer", address)
}

// apiServerPort checks that no other program on a master listens on the API server's port.
func (d *config) apiServerPort(c *Cluster) {
	const path = "spec.controlPlaneEndpoint.port"
	port, masters := c.APIServerPort(), c.Spec.RoleGroups.Names(RoleMaster)
	program := portsOfMasters[port]
	for _, h := range c.Spec.Hosts {
		if h.Port == port && slices.Contains(masters, h.Name) {
			program = "the SSH server of " + h.Name
		}
	}
	if r := c.Spec.Registry; r.Type == "registry" {
		_, own, _ := strings.Cut(r.PrivateRegistry, ":")
		if own == "" {
			own = "443"
		}
		if own == strconv.Itoa(port) && slices.ContainsFunc(c.Spec.RoleGroups.Names(RoleRegistry), func(n string) bool { return slices.Contains(masters, n) }) {
			program = "the registry"
		}
	}
	if program != "" {
		d.Fail(path, "choose another port, such as 6443", "%d is the port of %s on a master", port, program)
	}
}

func (d *config) validateEtcd(c *Cluster) {
	e := c.Spec.Etcd
	if d.Valid("spec.etcd.type") {
		switch {
		case e.Type == "external" && len(e.External.Endpoints) == 0:
			d.Fail("spec.etcd.external.endpoints", "write the client URLs of the etcd members, as in https://192.168.6.6:2379", "is required if spec.etcd.type is external")
		case e.Type != "external" && d.Written("spec.etcd.external"):
			d.Fail("spec.etcd.external", "write type: external, or leave it out", "has no effect if spec.etcd.type is %s", e.Type)
		case e.Type == "external" && e.Version != "":
			d.Warn("spec.etcd.version", "leave it out", "has no effect if spec.etcd.type is external")
		}
	}
	if (e.External.CertFile == "") != (e.External.KeyFile == "") {
		d.Fail("spec.etcd.external", "write both certFile and keyFile, or neither", "has only one of certFile and keyFile")
	}
	for i, a := range e.External.Endpoints {
		if strings.HasPrefix(a, "https://") && e.External.CAFile == "" && d.Valid("spec.etcd.external.caFile") {
			d.Fail(document.Indexed("spec.etcd.external.endpoints", i), "write spec.etcd.external.caFile", "uses TLS, but there is no caFile to verify the certificate")
			break
		}
	}
	if d.Valid("spec.etcd.heartbeatInterval") && e.ElectionTimeout < 5*e.HeartbeatInterval {
		at := "spec.etcd.electionTimeout"
		if !d.Written(at) {
			at = "spec.etcd.heartbeatInterval"
		}
		d.Fail(at, "make electionTimeout at least five times heartbeatInterval", "electionTimeout of %d ms is less than five times heartbeatInterval of %d ms", e.ElectionTimeout, e.HeartbeatInterval)
	}
	if e.QuotaBackendBytes > 8<<30 {
		d.Warn("spec.etcd.quotaBackendBytes", "write at most 8589934592", "%d is more than 8 GiB, the maximum that etcd recommends", e.QuotaBackendBytes)
	}
}
