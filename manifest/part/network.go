package part

import "github.com/mensylisir/kubexm/manifest"

// Network is a plugin that connects pods. Of one that is not supported the name is known
// and Chart, and nothing else.
type Network struct {
	Name      string // of the plugin, and of its component
	Supported bool   // there are steps that install it
	Chart     bool   // it comes as a Helm chart
	Namespace string // its pods run in
	ConfFile  string // in /etc/cni/net.d
	Images    []string
	Modules   []string // of the kernel
	Dirs      []string // on a node, beside those of every plugin
	Links     []string
	Chains    []string // prefixes of iptables' chains
}

// NetworkOf gives the plugin of a config; the zero Network where it names none.
func NetworkOf(c *manifest.Cluster) Network {
	plugin := c.Spec.Network.Plugin
	for _, n := range networks() {
		if n.Name != plugin {
			continue
		}
		// The backends vxlan and wireguard are named after their modules.
		if b := c.Spec.Network.Flannel.Backend; n.Name == "flannel" && b != "host-gw" {
			n.Modules = append(n.Modules, b)
		}
		return n
	}
	return Network{}
}

// Networks lists the plugins that are supported: a host is cleaned of what any of them
// leaves.
func Networks() []Network {
	var out []Network
	for _, n := range networks() {
		if n.Supported {
			out = append(out, n)
		}
	}
	return out
}

func networks() []Network {
	return []Network{
		{
			Name: "flannel", Supported: true, Namespace: "kube-flannel", ConfFile: "10-flannel.conflist",
			Images: []string{"flannel/flannel", "flannel/flannel-cni-plugin"},
			Dirs:   []string{"/run/flannel"}, Chains: []string{"FLANNEL-"},
			Links: []string{"flannel.1", "flannel-v6.1", "flannel-wg", "flannel-wg-v6"},
		},
		{Name: "calico"},
		{Name: "cilium", Chart: true},
		{Name: "kube-ovn", Chart: true},
		{Name: "hybridnet", Chart: true},
	}
}
