package part

import "github.com/mensylisir/kubexm/manifest"

// Network is a plugin that connects pods. Of one that is not supported the name is known,
// Chart and Beside, and nothing else.
type Network struct {
	Name      string   // of the plugin, and of its component
	Supported bool     // there are steps that install it
	Chart     bool     // it comes as a Helm chart
	Namespace string   // its pods run in
	ConfFile  string   // in /etc/cni/net.d
	Beside    []string // components that the bundle has beside it
	Images    []string
	Modules   []string // of the kernel
	Instead   string   // what to write in a config where the kernel has no such module
	Dirs      []string // on a node, beside those of every plugin
	Links     []string
	Chains    []string // prefixes of iptables' chains

	of func(*Network, manifest.Network) // adds what depends on its settings; it may be nil
}

// NetworkOf gives the plugin of a config; the zero Network where it names none.
func NetworkOf(c *manifest.Cluster) Network {
	plugin := c.Spec.Network.Plugin
	for _, n := range networks() {
		if n.Name != plugin {
			continue
		}
		if n.of != nil {
			n.of(&n, c.Spec.Network)
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
			Links: []string{"flannel.1", "flannel-v6.1", "flannel-wg", "flannel-wg-v6"}, of: ofFlannel,
		},
		{Name: "calico", Beside: []string{"calicoctl"}},
		{Name: "cilium", Chart: true},
		{Name: "kube-ovn", Chart: true},
		{Name: "hybridnet", Chart: true},
	}
}

// ofFlannel: the backends vxlan and wireguard are named after their modules.
func ofFlannel(n *Network, settings manifest.Network) {
	switch b := settings.Flannel.Backend; b {
	case "host-gw":
		return
	case "vxlan":
		n.Instead = "set spec.network.flannel.backend to host-gw, where no router is between the nodes"
	case "wireguard":
		n.Instead = "set spec.network.flannel.backend to vxlan"
	}
	n.Modules = append(n.Modules, settings.Flannel.Backend)
}
