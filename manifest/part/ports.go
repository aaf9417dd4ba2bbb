package part

import (
	"github.com/mensylisir/kubexm/manifest"
)

// ClientPort is where a member of the store answers, as etcd's documentation and
// kubeadm have it.
const ClientPort = 2379

// Group is a set of hosts that do the same.
type Group int

// The groups of hosts.
const (
	Nodes Group = iota // run a kubelet
	Masters
	Members       // of the store
	RegistryHosts // run the site's registry, where kubexm installs it
)

// roles gives the roles whose hosts are a group.
func (g Group) roles(c *manifest.Cluster) []string {
	switch g {
	case Masters:
		return []string{manifest.RoleMaster}
	case Members:
		return map[StoreKind][]string{Stacked: {manifest.RoleMaster}, Service: {manifest.RoleEtcd}}[storeKind(c)]
	case RegistryHosts:
		return map[RegistryKind][]string{OwnRegistry: {manifest.RoleRegistry}}[registryKind(c)]
	default:
		return []string{manifest.RoleMaster, manifest.RoleWorker}
	}
}

// In tells whether a host belongs to a group.
func (g Group) In(c *manifest.Cluster, host string) bool {
	for _, role := range g.roles(c) {
		if c.Spec.RoleGroups.Has(role, host) {
			return true
		}
	}
	return false
}

// Names gives the hosts of a group, each once; of nodes, the masters first.
func (g Group) Names(c *manifest.Cluster) []string {
	seen := map[string]bool{}
	var out []string
	for _, role := range g.roles(c) {
		for _, name := range c.Spec.RoleGroups.Names(role) {
			if !seen[name] {
				seen[name] = true
				out = append(out, name)
			}
		}
	}
	return out
}

// Hosts gives the same as hosts.
func (g Group) Hosts(c *manifest.Cluster) []manifest.Host {
	all := map[string]manifest.Host{}
	for _, h := range c.Spec.Hosts {
		all[h.Name] = h
	}
	var out []manifest.Host
	for _, name := range g.Names(c) {
		if h, ok := all[name]; ok {
			out = append(out, h)
		}
	}
	return out
}

// Port is a TCP port that a part of the cluster listens on.
type Port struct {
	Number  uint16
	Of      string  // who listens
	Reached string  // the same in a sentence of who has to reach it
	On      []Group // who listen
	From    []Group // whom else it has to be reached from; nobody: it is for the host alone
}

// Ports lists what a cluster's parts listen on.
func Ports(c *manifest.Cluster) []Port {
	api := uint16(EndpointOf(c).Backend)       //nolint:gosec // a port
	push := uint16(c.Spec.Registry.PushPort()) //nolint:gosec // a port
	return []Port{
		{api, "kube-apiserver", "the API server", []Group{Masters}, []Group{Nodes}},
		{10257, "kube-controller-manager", "", []Group{Masters}, nil},
		{10259, "kube-scheduler", "", []Group{Masters}, nil},
		{10250, "kubelet", "the kubelet", []Group{Nodes}, []Group{Masters}},
		{10248, "kubelet", "", []Group{Nodes}, nil},
		{10256, "kube-proxy", "", []Group{Nodes}, nil},
		{ClientPort, "etcd", "etcd", []Group{Members}, []Group{Members, Masters}},
		{2380, "etcd", "etcd, for its members,", []Group{Members}, []Group{Members}},
		{2381, "etcd", "", []Group{Members}, nil}, // metrics, on the loopback address
		{portOf(c.Spec.Registry.PrivateRegistry), "the registry", "the registry", []Group{RegistryHosts}, []Group{Nodes}},
		{push, "the registry's service for pushes", "", []Group{RegistryHosts}, nil},
	}
}
