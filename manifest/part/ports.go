package part

import (
	"github.com/mensylisir/kubexm/manifest"
)

// ClientPort is the port of an etcd member for clients, the default of etcd and kubeadm.
const ClientPort = 2379

// Group is a set of hosts with the same task.
type Group int

// The groups of hosts.
const (
	Nodes Group = iota // hosts with a kubelet
	Masters
	Members       // hosts of etcd members
	RegistryHosts // hosts of the site's registry, if kubexm installs it
	Balancers     // hosts with keepalived and haproxy or nginx in front of the API servers
	// WorkerBalancers are the workers that run haproxy or nginx for the clients on themselves.
	WorkerBalancers
)

// roles returns the roles whose hosts form a group.
func (g Group) roles(c *manifest.Cluster) []string {
	switch g {
	case Masters:
		return []string{manifest.RoleMaster}
	case Members:
		return map[StoreKind][]string{Stacked: {manifest.RoleMaster}, Service: {manifest.RoleEtcd}}[storeKind(c)]
	case RegistryHosts:
		return map[RegistryKind][]string{OwnRegistry: {manifest.RoleRegistry}}[registryKind(c)]
	case Balancers:
		return []string{manifest.RoleLoadBalancer}
	case WorkerBalancers:
		if EndpointOf(c).OnNodes == "" {
			return nil
		}
		return []string{manifest.RoleWorker}
	default:
		return []string{manifest.RoleMaster, manifest.RoleWorker}
	}
}

// excludes reports whether a host has a role of the group and is not in it.
func (g Group) excludes(c *manifest.Cluster, host string) bool {
	return g == WorkerBalancers && c.Spec.RoleGroups.Has(manifest.RoleMaster, host)
}

// In reports whether a host belongs to a group.
func (g Group) In(c *manifest.Cluster, host string) bool {
	if g.excludes(c, host) {
		return false
	}
	for _, role := range g.roles(c) {
		if c.Spec.RoleGroups.Has(role, host) {
			return true
		}
	}
	return false
}

// Names returns the names of the hosts of a group without duplicates. Masters come before
// workers.
func (g Group) Names(c *manifest.Cluster) []string {
	seen := map[string]bool{}
	var out []string
	for _, role := range g.roles(c) {
		for _, name := range c.Spec.RoleGroups.Names(role) {
			if !seen[name] && !g.excludes(c, name) {
				seen[name] = true
				out = append(out, name)
			}
		}
	}
	return out
}

// Hosts returns the hosts of a group, in the order of Names.
func (g Group) Hosts(c *manifest.Cluster) []manifest.Host {
	names := g.Names(c)
	place := make(map[string]int, len(names))
	for i, name := range names {
		place[name] = i
	}
	// A map of the group alone: sites have a thousand hosts, and most groups have three.
	found := make([]*manifest.Host, len(names))
	for i := range c.Spec.Hosts {
		if at, ok := place[c.Spec.Hosts[i].Name]; ok {
			found[at] = &c.Spec.Hosts[i]
		}
	}
	var out []manifest.Host
	for _, h := range found {
		if h != nil {
			out = append(out, *h)
		}
	}
	return out
}

// Port is a TCP port that a part of the cluster listens on.
type Port struct {
	Number  uint16
	Of      string  // the program that listens
	Reached string  // the program's name in a sentence about which hosts must reach it
	On      []Group // the hosts that listen
	From    []Group // the hosts that must reach the port; none: only the host itself
}

// Ports lists the ports of a cluster's parts.
func Ports(c *manifest.Cluster) []Port {
	api := uint16(EndpointOf(c).Backend)              //nolint:gosec // a port
	front := uint16(c.Spec.ControlPlaneEndpoint.Port) //nolint:gosec // a port
	push := uint16(c.Spec.Registry.PushPort())        //nolint:gosec // a port
	out := []Port{
		{api, "kube-apiserver", "the API server", []Group{Masters}, []Group{Nodes}},
		{front, "the load balancer", "the load balancer", []Group{Balancers}, []Group{Nodes}},
		{front, "the load balancer of the worker", "", []Group{WorkerBalancers}, nil}, // on the loopback address
		{BalancerHealthPort, "the load balancer", "", []Group{Balancers}, nil},        // health, on the loopback address
		{BalancerHealthPort, "the load balancer of the worker", "", []Group{WorkerBalancers}, nil},
		{10257, "kube-controller-manager", "", []Group{Masters}, nil},
		{10259, "kube-scheduler", "", []Group{Masters}, nil},
		{10250, "kubelet", "the kubelet", []Group{Nodes}, []Group{Masters}},
		{10248, "kubelet", "", []Group{Nodes}, nil},
		{10256, "kube-proxy", "", []Group{Nodes}, nil},
		{ClientPort, "etcd", "etcd", []Group{Members}, []Group{Members, Masters}},
		{2380, "etcd", "etcd, for its members,", []Group{Members}, []Group{Members}}, // peer traffic
		{2381, "etcd", "", []Group{Members}, nil},                                    // metrics, on the loopback address
		{portOf(c.Spec.Registry.PrivateRegistry), "the registry", "the registry", []Group{RegistryHosts}, []Group{Nodes}},
		{push, "the registry's service for pushes", "", []Group{RegistryHosts}, nil},
	}
	if EndpointOf(c).Front == KubeVIPFront {
		out = append(out, Port{KubeVIPMetricsPort, "kube-vip", "", []Group{Masters}, nil})
	}
	return append(out, NetworkOf(c).Ports...)
}
