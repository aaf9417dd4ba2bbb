package part

import "github.com/mensylisir/kubexm/manifest"

// Network is a network plugin (CNI). A plugin that is not supported has only Name, Chart and
// AdditionalComponents.
type Network struct {
	Name                 string   // of the plugin, and of its component
	Supported            bool     // kubexm has steps that install it
	Chart                bool     // it is installed from a Helm chart
	Namespace            string   // of its pods
	ConfFile             string   // in /etc/cni/net.d
	AdditionalComponents []string // additional components of the plugin in the bundle
	Images               []string
	Modules              []string // required kernel modules
	Advice               string   // advice if the kernel has no such module
	Dirs                 []string // directories on a node, in addition to those of every plugin
	Links                []string // network interfaces on a node
	Chains               []string // prefixes of iptables chains

	of func(*Network, manifest.Network) // adds values that depend on the plugin's settings; may be nil
}

// NetworkOf returns the plugin of a config; the zero Network if there is none.
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

// Networks lists the supported plugins. Cleaning a host removes the files of all of them.
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
		{Name: "calico", AdditionalComponents: []string{"calicoctl"}},
		{Name: "cilium", Chart: true},
		{Name: "kube-ovn", Chart: true},
		{Name: "hybridnet", Chart: true},
	}
}

// ofFlannel adds the kernel module of the backend: vxlan and wireguard are named after theirs.
func ofFlannel(n *Network, settings manifest.Network) {
	switch b := settings.Flannel.Backend; b {
	case "host-gw":
		return
	case "vxlan":
		n.Advice = "set spec.network.flannel.backend to host-gw, if there is no router between the nodes"
	case "wireguard":
		n.Advice = "set spec.network.flannel.backend to vxlan"
	}
	n.Modules = append(n.Modules, settings.Flannel.Backend)
}
