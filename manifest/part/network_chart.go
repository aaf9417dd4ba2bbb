package part

import (
	"maps"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// NetworkChart returns the pod network's chart as an add-on, with its values; false if the network is
// not installed from a chart.
func NetworkChart(c *manifest.Cluster) (manifest.Addon, bool) {
	n := NetworkOf(c)
	if !n.Chart {
		return manifest.Addon{}, false
	}
	var values map[string]any
	switch n.Name {
	case "cilium":
		values = ciliumValues(c)
	case "kube-ovn":
		values = kubeOVNValues(c)
	}
	return manifest.Addon{Name: n.Name, Type: "helm", Namespace: "kube-system", Values: merged(values, c.Spec.Network.Values)}, true
}

// ciliumValues returns the values of cilium's chart for a config; all others are the chart's own
// (https://docs.cilium.io/en/stable/helm-reference/).
func ciliumValues(c *manifest.Cluster) map[string]any {
	four, six := PodRanges(c)
	type values = map[string]any
	return values{
		"ipv4": values{"enabled": four != ""}, "ipv6": values{"enabled": six != ""},
		// Nodes get their ranges of pod addresses from Kubernetes, like flannel's.
		"ipam": values{"mode": "kubernetes"},
		// Else cilium renames the configuration of multus. A file of another network is refused before.
		"cni": values{"exclusive": false},
		// Operators do not share a node.
		"operator": values{"replicas": min(2, max(1, len(Nodes.Names(c)))), "rollOutPods": true},
		// Changed values reach pods that run.
		"rollOutCiliumPods": true, "envoy": values{"rollOutPods": true},
		// Hubble's certificates end after three years, and only an upgrade of the chart renews them.
		"hubble": values{"enabled": false},
	}
}

// kubeOVNValues returns the value without which kube-ovn's chart fails where it cannot ask a cluster for
// its nodes, as while a bundle is locked: the addresses of the masters.
func kubeOVNValues(c *manifest.Cluster) map[string]any {
	var addresses []string
	for _, h := range Masters.Hosts(c) {
		addresses = append(addresses, h.Address)
	}
	if len(addresses) == 0 { // a config without hosts is for a bundle only
		addresses = []string{"192.0.2.1"}
	}
	return map[string]any{"MASTER_NODES": strings.Join(addresses, ",")}
}

// merged returns base with the values of over: mappings are merged, other values replaced, as helm does.
func merged(base, over map[string]any) map[string]any {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range over {
		below, ok := value.(map[string]any)
		if was, both := out[key].(map[string]any); ok && both {
			value = merged(was, below)
		}
		out[key] = value
	}
	return out
}
