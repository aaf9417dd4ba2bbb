package part

import (
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// Network is a network plugin (CNI). A plugin that is not supported has only Name and Chart.
type Network struct {
	Name                 string   // of the plugin, and of its component
	Supported            bool     // kubexm has steps that install it
	Chart                bool     // it is installed from a Helm chart, see NetworkChart
	Namespace            string   // of its pods
	DaemonSet            string   // that runs a pod on every node
	Deployments          []string // that a network from a chart needs besides the DaemonSet
	ConfFile             string   // in /etc/cni/net.d
	AdditionalComponents []string // additional components of the plugin in the bundle
	Images               []string
	Modules              []string // required kernel modules
	Advice               string   // advice if the kernel has no such module
	Dirs                 []string // directories on a node, in addition to those of every plugin; each node of the plugin has the first
	Links                []string // network interfaces on a node
	Unmanaged            []string // patterns of interfaces that NetworkManager must leave alone
	Chains               []string // prefixes of iptables chains
	Comments             []string // prefixes of the comments of its rules in chains of the kernel
	Tables               []string // iptables tables with such chains, besides filter, nat and mangle
	Sets                 []string // prefixes of IP sets
	Routes               string   // routing protocol of its routes, by number (ip-route(8)); "" without any that stay
	// PodRoutes is the routing protocol of routes to pods that a program of the plugin adds which a site
	// may run itself. "" without such a program.
	PodRoutes string
	// Files are files on a node outside of Dirs, and Mounts are mount points below them.
	Files, Mounts []string
	// Maps is the prefix of eBPF maps that stay in /sys/fs/bpf/tc/globals. "" without any.
	Maps string
	// RuleTables are routing tables, by number, that the plugin fills and has rules for.
	RuleTables []string
	// MovesLocalRule is the priority to which the plugin moves the kernel's rule for local addresses.
	// "" if it leaves the rule.
	MovesLocalRule string
	// AsksPods reports that the plugin's health checks ask a pod of each node, for a while also of nodes
	// that have left.
	AsksPods bool
	// NeedsAgent reports that the plugin's program waits, twice ten seconds for each pod that is removed,
	// for an agent that has ended.
	NeedsAgent bool
	// Sysctls are kernel settings that the plugin changes and does not restore.
	Sysctls []string
	// Tunnels are network interfaces of a kernel module, on which the plugin has addresses of pods.
	Tunnels []string
	Ports   []Port

	of func(*Network, manifest.Network) // adds values that depend on the plugin's settings; may be nil
}

// PodRanges returns the pods' IPv4 and IPv6 ranges; "" for a family that they do not have.
func PodRanges(c *manifest.Cluster) (four, six string) {
	for _, r := range c.Spec.Network.KubePodsCIDR {
		if strings.Contains(r, ":") {
			six = r
		} else {
			four = r
		}
	}
	return four, six
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
			Name: "flannel", Supported: true, Namespace: "kube-flannel", DaemonSet: "kube-flannel-ds", ConfFile: "10-flannel.conflist",
			Images: []string{"flannel/flannel", "flannel/flannel-cni-plugin"},
			Dirs:   []string{"/run/flannel"}, Chains: []string{"FLANNEL-"},
			Links: []string{"flannel.1", "flannel-v6.1", "flannel-wg", "flannel-wg-v6"}, of: ofFlannel,
		},
		{
			// Folders are those of the manifest's volumes; the rest is of felix v3.28.5 (rules/rule_defs.go,
			// ipsets, dataplane/linux/int_dataplane.go, config: DeviceRouteProtocol).
			Name: "calico", Supported: true, Namespace: "kube-system", DaemonSet: "calico-node", ConfFile: "10-calico.conflist",
			AdditionalComponents: []string{"calicoctl"},
			Images:               []string{"calico/cni", "calico/node", "calico/kube-controllers"},
			Dirs:                 []string{"/var/lib/calico", "/run/calico", "/run/nodeagent", "/var/log/calico"},
			Links:                []string{"vxlan.calico", "vxlan-v6.calico"},
			// https://docs.tigera.io/calico/latest/operations/troubleshoot/troubleshooting#configure-networkmanager
			Unmanaged: []string{"cali*", "tunl*", "vxlan.calico", "vxlan-v6.calico"},
			Chains:    []string{"cali-"}, Comments: []string{"cali:"}, Tables: []string{"raw"},
			Sets: []string{"cali40", "cali60"}, Routes: "80", PodRoutes: "bird", Tunnels: []string{"tunl0"},
			Ports: []Port{{9099, "calico", "", []Group{Nodes}, nil}}, // health, on the loopback address
			of:    ofCalico,
		},
		{
			// Files and links are those of cilium v1.17.15: the chart's volumes, sysctlfix, pkg/defaults,
			// pkg/datapath/iptables, pkg/datapath/loader, pkg/datapath/linux/linux_defaults, pkg/ipset.
			Name: "cilium", Supported: true, Chart: true, Namespace: "kube-system", DaemonSet: "cilium", Deployments: []string{"cilium-operator"},
			ConfFile: "05-cilium.conflist", Modules: []string{"vxlan"}, Advice: "set spec.network.plugin to another plugin",
			Dirs:  []string{"/run/cilium", "/sys/fs/bpf/cilium"},
			Files: []string{"/etc/sysctl.d/99-zzz-override_cilium.conf"}, Mounts: []string{"/run/cilium/cgroupv2"},
			Links:  []string{"cilium_host", "cilium_vxlan", "cilium_wg0"},
			Chains: []string{"CILIUM_", "OLD_CILIUM_"}, Comments: []string{"cilium-feeder:"}, Tables: []string{"raw"},
			Sets: []string{"cilium_node_set"}, Maps: "cilium_", RuleTables: []string{"2004", "2005"}, MovesLocalRule: "100", AsksPods: true, NeedsAgent: true,
			Sysctls: []string{"net.ipv4.conf.all.rp_filter", "net.ipv4.fib_multipath_use_neigh", "net.core.bpf_jit_enable", "net.core.fb_tunnels_only_for_init_net", "kernel.timer_migration"},
			Ports: []Port{
				{4240, "cilium", "the health checks of cilium", []Group{Nodes}, []Group{Nodes}},
				{9879, "cilium", "", []Group{Nodes}, nil}, {9878, "cilium-envoy", "", []Group{Nodes}, nil}, // health, on the loopback address
			},
		},
		{Name: "kube-ovn", Chart: true},
		{Name: "hybridnet", Chart: true},
	}
}

// ofCalico adds the kernel module of the encapsulation, and BGP's port.
func ofCalico(n *Network, settings manifest.Network) {
	c := settings.Calico
	if c.VXLANMode == "Never" {
		n.Ports = append(n.Ports, Port{179, "calico", "BGP of calico", []Group{Nodes}, []Group{Nodes}})
	}
	switch {
	case c.VXLANMode != "Never":
		n.Modules, n.Advice = append(n.Modules, "vxlan"), "set spec.network.calico.vxlanMode and ipipMode to Never, if there is no router between the nodes"
	case c.IPIPMode != "Never":
		n.Modules, n.Advice = append(n.Modules, "ipip"), "set spec.network.calico.vxlanMode to Always"
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
