package manifest

import (
	"slices"

	"github.com/mensylisir/kubexm/manifest/document"
)

func (d *config) validateKubernetes(c *Cluster) {
	k := c.Spec.Kubernetes
	const version = "spec.kubernetes.version"
	m := minor(k.Version)
	if !d.Valid(version) {
		m = 0
	}
	if m > 0 && m < 24 {
		d.Fail(version, "choose 1.24 or newer", "%s is not supported by kubexm", k.Version)
	}
	for name := range k.FeatureGates {
		if m > 0 && GateRemoved(name, k.Version) {
			d.Warn(document.Join("spec.kubernetes.featureGates", name), "remove it", "%s was removed in Kubernetes 1.%d and is left out", name, goneGates[name]+1)
		}
	}
	d.kubeProxyRules(c, m)
	d.validateHardening(c)
	d.networkRules(c)
}

func (d *config) kubeProxyRules(c *Cluster, m int) {
	p := c.Spec.Kubernetes.KubeProxy
	const mode = "spec.kubernetes.kubeProxy.mode"
	if !d.Valid(mode) {
		return
	}
	if p.Mode == "ipvs" && m >= 35 {
		d.Warn(mode, "write mode: nftables", "ipvs is deprecated from Kubernetes 1.35 on")
	}
	if p.Mode == "nftables" && m > 0 && m < 29 {
		d.Fail(mode, "write mode: ipvs or iptables", "nftables requires Kubernetes 1.29 or newer")
	}
	if len(p.IPVS.ExcludeCIDRs) > 0 && p.Mode != "ipvs" {
		d.Warn("spec.kubernetes.kubeProxy.ipvs", "leave it out", "has no effect if the mode is %s", p.Mode)
	}
}

// chartPlugins are the network plugins that have a Helm chart in the version matrix.
var chartPlugins = []string{"cilium", "kube-ovn", "hybridnet"}

func (d *config) networkRules(c *Cluster) {
	n := c.Spec.Network
	if !d.Valid("spec.network.plugin") {
		return
	}
	if n.Plugin == "calico" && n.Calico.IPIPMode != "Never" && n.Calico.VXLANMode != "Never" && d.Valid("spec.network.calico.ipipMode", "spec.network.calico.vxlanMode") {
		d.Fail("spec.network.calico.vxlanMode", "set one of ipipMode and vxlanMode to Never", "is %s, but ipipMode is %s", n.Calico.VXLANMode, n.Calico.IPIPMode)
	}
	for _, other := range words[Network]("Plugin", "enum") {
		if n.Plugin != other && d.Written("spec.network."+other) {
			d.Warn("spec.network."+other, "leave it out", "has no effect if the plugin is %s", n.Plugin)
		}
	}
	if len(n.Values) > 0 && !slices.Contains(chartPlugins, n.Plugin) {
		d.Warn("spec.network.values", "leave it out", "has no effect if the plugin is %s", n.Plugin)
	}
	if n.Plugin == "none" && n.Version != "" {
		d.Warn("spec.network.version", "leave it out", "has no effect if the plugin is none")
	}
}

// validateRuntime finds settings of a runtime that is not installed.
func (d *config) validateRuntime(c *Cluster) {
	if !d.Valid("spec.runtime.type", "spec.registry.type") {
		return
	}
	installed := []string{c.Spec.Runtime.Type}
	if c.Spec.Registry.Type == "harbor" {
		installed = append(installed, "docker") // Harbor runs in Docker containers
	}
	for _, kind := range runtimes() {
		if !slices.Contains(installed, kind) && d.Written("spec.runtime."+kind) {
			d.Warn("spec.runtime."+kind, "leave it out", "has no effect if the runtime is %s", c.Spec.Runtime.Type)
		}
	}
}
