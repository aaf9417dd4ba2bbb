package controlplane

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
)

// KubeletConfig returns the configuration of all kubelets.
func KubeletConfig(c *manifest.Cluster) (Object, error) {
	k := c.Spec.Kubernetes
	o := Object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"cgroupDriver": k.Kubelet.CgroupDriver, "maxPods": k.MaxPods, "podPidsLimit": k.PodPidsLimit,
	}
	if part.HasNodeCache(c) {
		o["clusterDNS"] = []string{part.NodeCacheAddress}
	}
	if gates := knownGates(c); len(gates) > 0 {
		o["featureGates"] = gates
	}
	if Minor(c) >= 35 { // one configuration for all kubelets, and any host may have cgroup v1
		o["failCgroupV1"] = false
	}
	return o, hardenKubelet(c, o)
}

// hardenKubelet adds the hardening settings to the kubelet's configuration. The kubelet's
// flags override it.
func hardenKubelet(c *manifest.Cluster, o Object) error {
	for _, s := range c.SettingsOf(manifest.OfKubelet) {
		at, path := o, strings.Split(s.Name, ".")
		for _, key := range path[:len(path)-1] {
			next, ok := at[key].(Object)
			if !ok {
				next = Object{}
				at[key] = next
			}
			at = next
		}
		last := path[len(path)-1]
		if words := strings.Split(s.Value, ","); len(words) > 1 {
			at[last] = words
			continue
		}
		var value any
		if err := yaml.Unmarshal([]byte(s.Value), &value); err != nil {
			return err
		}
		at[last] = value
	}
	return nil
}

// ResolvConf returns the resolv.conf that the kubelet on h passes to pods. It is a flag of
// each node, because kubeadm writes the first master's setting into the configuration of all
// kubelets.
func ResolvConf(h *steps.Host) string {
	// The stub of systemd-resolved listens on the loopback address: inside a pod that is the
	// pod itself, and CoreDNS would forward queries to itself in a loop.
	if h.Facts.Resolv.Kind == "systemd-resolved-stub" {
		return "/run/systemd/resolve/resolv.conf"
	}
	return "/etc/resolv.conf"
}

// ProxyConfig returns the configuration of kube-proxy.
func ProxyConfig(c *manifest.Cluster) Object {
	p := c.Spec.Kubernetes.KubeProxy
	o := Object{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
		"mode": p.Mode, "clusterCIDR": strings.Join(c.Spec.Network.KubePodsCIDR, ","),
	}
	if p.Mode == "nftables" { // each mode reads its own block, and ipvs that of iptables too
		o["nftables"] = Object{"masqueradeAll": p.MasqueradeAll}
	} else {
		o["iptables"] = Object{"masqueradeAll": p.MasqueradeAll}
	}
	if p.Mode == "ipvs" {
		o["ipvs"] = Object{"excludeCIDRs": p.IPVS.ExcludeCIDRs, "strictARP": true}
	}
	if gates := knownGates(c); len(gates) > 0 {
		o["featureGates"] = gates
	}
	return o
}
