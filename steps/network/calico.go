package network

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
)

// Calico applies calico's manifest with the cluster's pod ranges, encapsulation, block size and
// MTU. calico creates the address pools at its first start: later changes of the ranges or of the
// encapsulation have no effect.
func Calico(c *manifest.Cluster) steps.Step {
	return apply(c, "network.install-calico", "calico", calicoFor)
}

// WaitCalico waits until calico runs on all nodes, and its controllers run: nodes are Ready as soon as
// its CNI plugin is installed.
func WaitCalico() steps.Step { return wait("network.wait-calico", "calico") }

// calicoctl is calico's command line client, and its configuration, with which it reads the API server.
func calicoctl() []op.Resource {
	return []op.Resource{
		op.Blob{Path: "/usr/local/bin/calicoctl", Need: manifest.Need{Kind: manifest.Binary, Name: "calicoctl"}},
		op.Dir{Path: "/etc/calico", Own: true},
		op.Text("/etc/calico/calicoctl.cfg", func(context.Context, *steps.Host) ([]byte, error) {
			return []byte("apiVersion: projectcalico.org/v3\nkind: CalicoAPIConfig\nmetadata: {}\nspec:\n  datastoreType: kubernetes\n  kubeconfig: " + kubectl.AdminConf + "\n"), nil
		}),
	}
}

// InstallCalicoctl installs calicoctl on a master.
func InstallCalicoctl() steps.Step {
	return op.Ensure("network.install-calicoctl", calicoctl(), op.Upload)
}

// RemoveCalicoctl removes calicoctl from a master.
func RemoveCalicoctl() steps.Step { return op.Remove("network.remove-calicoctl", calicoctl()) }

// The encapsulation of a pool that has none.
const never = "Never"

// routesByBGP reports whether calico's nodes exchange routes by BGP: between the pods of nodes packets
// are then encapsulated by IPIP or not at all. With VXLAN there is no BGP.
func routesByBGP(c *manifest.Cluster) bool { return c.Spec.Network.Calico.VXLANMode == never }

// calicoFor returns calico's manifest with the settings of the config. Its fields are documented at
// https://docs.tigera.io/calico/latest/reference/configure-calico-node.
func calicoFor(c *manifest.Cluster, text []byte) ([]byte, error) {
	conf, node := false, false
	out, err := editDocuments(text, func(doc *yaml.Node) error {
		var err error
		switch valueAt(doc, "kind") + "/" + valueAt(doc, "metadata", "name") {
		case "ConfigMap/calico-config":
			conf, err = true, editCalicoConfig(c, doc)
		case "DaemonSet/calico-node":
			node, err = true, editCalicoNode(c, doc)
		}
		return err
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("calico's manifest: %w", err)
	case !conf:
		return nil, errors.New("calico's manifest has no ConfigMap calico-config")
	case !node:
		return nil, errors.New("calico's manifest has no DaemonSet calico-node")
	}
	return out, nil
}

// editCalicoConfig sets how nodes route, the pods' MTU, and the families of their addresses.
func editCalicoConfig(c *manifest.Cluster, doc *yaml.Node) error {
	backend := "vxlan"
	if routesByBGP(c) {
		backend = "bird"
	}
	for key, value := range map[string]string{"calico_backend": backend, "veth_mtu": strconv.Itoa(c.Spec.Network.Calico.VethMTU)} {
		n := nodeAt(doc, "data", key)
		if n == nil {
			return fmt.Errorf("ConfigMap calico-config has no %s", key)
		}
		n.SetString(value)
	}
	four, six := part.PodRanges(c)
	if six == "" {
		return nil // calico assigns IPv4 addresses unless it is told otherwise
	}
	// The text is not JSON until calico's installer has filled in numbers.
	const kind = `"type": "calico-ipam"`
	n := nodeAt(doc, "data", "cni_network_config")
	if n == nil || strings.Count(n.Value, kind) != 1 {
		return errors.New("cni_network_config of ConfigMap calico-config does not name calico-ipam once")
	}
	n.Value = strings.Replace(n.Value, kind, fmt.Sprintf(`%s, "assign_ipv4": "%t", "assign_ipv6": "true"`, kind, four != ""), 1)
	return nil
}

// variable is a variable of calico-node's environment.
type variable struct{ name, value string }

// calicoVariables returns the variables that follow from the config.
func calicoVariables(c *manifest.Cluster) []variable {
	settings := c.Spec.Network.Calico
	four, six := part.PodRanges(c)
	clusterType := "k8s"
	if routesByBGP(c) {
		clusterType = "k8s,bgp"
	}
	// The node's address in Kubernetes, which kubexm gives the kubelet: with several interfaces
	// calico's own search may find another one.
	const nodeAddress = "kubernetes-internal-ip"
	out := []variable{
		{"CLUSTER_TYPE", clusterType},
		{"FELIX_USAGEREPORTINGENABLED", "false"}, // otherwise it sends a report to its makers after five minutes (felix/usagerep)
	}
	if four != "" {
		out = append(out,
			variable{"IP", "autodetect"}, variable{"IP_AUTODETECTION_METHOD", nodeAddress},
			variable{"CALICO_IPV4POOL_CIDR", four}, variable{"CALICO_IPV4POOL_IPIP", settings.IPIPMode},
			variable{"CALICO_IPV4POOL_VXLAN", settings.VXLANMode}, variable{"CALICO_IPV4POOL_BLOCK_SIZE", strconv.Itoa(c.Spec.Network.IPPool.BlockSize)},
		)
	} else {
		out = append(out, variable{"IP", "none"}, variable{"CALICO_ROUTER_ID", "hash"}) // a router's ID is an IPv4 address otherwise
	}
	if six != "" {
		out = append(out,
			variable{"IP6", "autodetect"}, variable{"IP6_AUTODETECTION_METHOD", nodeAddress},
			variable{"CALICO_IPV6POOL_CIDR", six}, variable{"CALICO_IPV6POOL_VXLAN", settings.VXLANMode}, // there is no IPIP for IPv6
			variable{"CALICO_IPV6POOL_NAT_OUTGOING", "true"}, variable{"FELIX_IPV6SUPPORT", "true"},
		)
	}
	if c.Spec.Kubernetes.KubeProxy.Mode == "nftables" {
		out = append(out, variable{"FELIX_NFTABLESMODE", "Enabled"}) // from v3.29.0 on; its iptables rules would be evaluated besides kube-proxy's
	}
	return out
}

// skippedPlugins are the CNI plugins of other projects in calico's image, which its installer would
// write over those of the bundle (cni-plugin/pkg/install/install.go and Makefile of calico v3.28.5).
const skippedPlugins = "bandwidth,flannel,host-local,loopback,portmap,tuning"

// editCalicoNode sets the variables and probes of the DaemonSet. It removes the init container that
// mounts file systems for the eBPF data plane, which kubexm does not offer: its mounts stay on a host
// when the pod has ended.
func editCalicoNode(c *manifest.Cluster, doc *yaml.Node) error {
	before := nodeAt(doc, "spec", "template", "spec", "initContainers")
	removeNamed(before, "mount-bpffs")
	removeNamed(before, "ebpf-bootstrap") // its name from v3.31 on
	installer := nodeAt(named(before, "install-cni"), "env")
	if installer == nil || installer.Kind != yaml.SequenceNode {
		return errors.New("DaemonSet calico-node has no init container install-cni with an environment")
	}
	setVariable(installer, variable{"SKIP_CNI_BINARIES", skippedPlugins})
	container := named(nodeAt(doc, "spec", "template", "spec", "containers"), "calico-node")
	if container == nil {
		return errors.New("DaemonSet calico-node has no container calico-node")
	}
	env := nodeAt(container, "env")
	if env == nil || env.Kind != yaml.SequenceNode {
		return errors.New("container calico-node has no environment")
	}
	for _, v := range calicoVariables(c) {
		setVariable(env, v)
	}
	if routesByBGP(c) {
		return nil
	}
	for _, probe := range []string{"livenessProbe", "readinessProbe"} { // BIRD does not run
		command := nodeAt(container, probe, "exec", "command")
		if command == nil {
			return fmt.Errorf("container calico-node has no %s", probe)
		}
		command.Content = slices.DeleteFunc(command.Content, func(n *yaml.Node) bool { return strings.HasPrefix(n.Value, "-bird-") })
	}
	return nil
}

// named returns the mapping of a list that has a name; nil if there is none.
func named(list *yaml.Node, name string) *yaml.Node {
	if list == nil {
		return nil
	}
	for _, n := range list.Content {
		if valueAt(n, "name") == name {
			return n
		}
	}
	return nil
}

// removeNamed removes the mapping of a list that has a name.
func removeNamed(list *yaml.Node, name string) {
	if list != nil {
		list.Content = slices.DeleteFunc(list.Content, func(n *yaml.Node) bool { return valueAt(n, "name") == name })
	}
}

// setVariable sets a variable of an environment, in the place of the one of that name.
func setVariable(env *yaml.Node, v variable) {
	text := func(s string) *yaml.Node {
		n := &yaml.Node{}
		n.SetString(s)
		return n
	}
	entry := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{text("name"), text(v.name), text("value"), text(v.value)}}
	for i, n := range env.Content {
		if valueAt(n, "name") == v.name {
			env.Content[i] = entry
			return
		}
	}
	env.Content = append(env.Content, entry)
}
