package part

import "github.com/mensylisir/kubexm/manifest"

// componentsOf returns the components on the hosts of a group, by their names in the version
// matrix. Components that run anywhere in the cluster, such as add-ons, are not included.
func componentsOf(c *manifest.Cluster, g Group) []string {
	switch g {
	case Nodes:
		return []string{"kubernetes", "kubeadm", "kubelet", "kubectl", "kube-proxy", "pause", "runc", "cni-plugins", "crictl", RuntimeOf(c).Name, NetworkOf(c).Name}
	case Masters:
		return []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "coredns"}
	case Members:
		return []string{"etcd", "etcd-image"}
	case RegistryHosts:
		return []string{"registry"}
	}
	return nil
}

// Components returns the components of a release that a host has because of its roles; nil if
// all is nil.
func Components(c *manifest.Cluster, host string, all map[string]string) map[string]string {
	if all == nil {
		return nil
	}
	out := map[string]string{}
	for _, g := range []Group{Nodes, Masters, Members, RegistryHosts} {
		if !g.In(c, host) {
			continue
		}
		for _, name := range componentsOf(c, g) {
			if v, ok := all[name]; ok {
				out[name] = v
			}
		}
	}
	return out
}
