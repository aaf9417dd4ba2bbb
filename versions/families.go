package versions

import (
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
)

// parts are the parts of a component that a config requires.
type parts int

const (
	files parts = 1 << iota
	images
)

// want is one component that a config requires.
type want struct {
	component string
	parts     parts
	version   string // in the config; "" means the default
	path      string // field of the config, for problems
	addon     bool   // the component must be an add-on
	// on are the platforms that require the component; none means all platforms of the bundle.
	on []manifest.Platform
	// unfit returns why a version does not fit the config; nil if all do.
	unfit func(version string) *manifest.Problem
}

// familyNames are the families of components, in the order in which they are shown.
var familyNames = []string{"kubernetes", "etcd", "runtime", "network", "registry", "load-balancer", "dns", "addon", "tool"}

// families return the required components, each for its part of the config.
var families = []func(*manifest.Cluster) []want{
	kubernetesWants, etcdWants, runtimeWants, networkWants, registryWants,
	loadBalancerWants, dnsWants, addonWants, toolWants,
}

func kubernetesWants(c *manifest.Cluster) []want {
	const path = "spec.kubernetes.version"
	ws := []want{
		{component: "kubelet", parts: files, path: path},
		{component: "kubectl", parts: files, path: path},
		{component: "pause", parts: images, path: path},
	}
	part := files
	if c.Spec.Kubernetes.Type != "kubexm" {
		part = images
		ws = append(ws, want{component: "kubeadm", parts: files, path: path})
	}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"} {
		ws = append(ws, want{component: name, parts: part, path: path})
	}
	return ws
}

func etcdWants(c *manifest.Cluster) []want {
	w := want{version: c.Spec.Etcd.Version, path: "spec.etcd.version"}
	switch part.StoreOf(c).Kind {
	case part.External:
		return nil
	case part.Stacked:
		w.component, w.parts = "etcd-image", images
	case part.Service:
		w.component, w.parts = "etcd", files
	}
	return []want{w}
}

func runtimeWants(c *manifest.Cluster) []want {
	r := c.Spec.Runtime
	const path, chosen = "spec.runtime.type", "spec.runtime.version"
	ws := []want{{component: "cni-plugins", parts: files, path: path}, {component: "crictl", parts: files, path: path}}
	for i, name := range part.RuntimeOf(c).Components {
		w := want{component: name, parts: files, path: path}
		if i == 0 {
			w.version, w.path = r.Version, chosen
		}
		ws = append(ws, w)
	}
	return ws
}

func networkWants(c *manifest.Cluster) []want {
	n, plugin := c.Spec.Network, part.NetworkOf(c)
	var ws []want
	if plugin.Name != "" {
		w := want{component: plugin.Name, parts: files | images, version: n.Version, path: "spec.network.version"}
		if plugin.Name == "calico" && c.Spec.Kubernetes.KubeProxy.Mode == "nftables" {
			w.unfit = withoutNFTables
		}
		ws = append(ws, w)
	}
	for _, name := range plugin.AdditionalComponents {
		ws = append(ws, want{component: name, parts: files, path: "spec.network.version"})
	}
	if part.HasMultus(c) {
		ws = append(ws, want{component: "multus", parts: files | images, path: "spec.network.multus"})
	}
	return ws
}

// withoutNFTables refuses a calico that has no data plane for nftables: its setting NFTablesMode exists
// from v3.29 on (https://docs.tigera.io/calico/3.29/reference/felix/configuration).
func withoutNFTables(version string) *manifest.Problem {
	if v, err := semver.NewVersion(version); err != nil || !v.LessThan(semver.New(3, 29, 0, "", "")) {
		return nil
	}
	return &manifest.Problem{
		Path: "spec.kubernetes.kubeProxy.mode", Message: "calico " + version + " does not support nftables",
		Advice: "use iptables or ipvs, or calico v3.29.0 or newer in spec.network.version",
	}
}

func registryWants(c *manifest.Cluster) []want {
	r := part.RegistryOf(c)
	var ws []want
	for i, name := range r.Components {
		w := want{component: name, parts: files, path: "spec.registry.type"}
		switch {
		case i == 0:
			w.version, w.path = c.Spec.Registry.Version, "spec.registry.version"
		case name == part.Docker:
			w.version = dockerVersion(c)
		}
		if r.Containers {
			w.on = registryPlatforms(c)
		}
		ws = append(ws, w)
	}
	return ws
}

// registryPlatforms returns the platforms of the registry hosts; none without such a host.
func registryPlatforms(c *manifest.Cluster) []manifest.Platform {
	var on []manifest.Platform
	for _, h := range c.HostsWith(manifest.RoleRegistry) {
		arch := h.Arch
		if arch == "" {
			arch = "amd64"
		}
		on = append(on, manifest.Platform{OS: "linux", Arch: arch})
	}
	return on
}

// dockerVersion returns the version of the nodes if their runtime is Docker, so that the bundle
// contains only one version.
func dockerVersion(c *manifest.Cluster) string {
	if part.RuntimeOf(c).Name == part.Docker {
		return c.Spec.Runtime.Version
	}
	return ""
}

func loadBalancerWants(c *manifest.Cluster) []want {
	const internal, external = "spec.loadBalancer.internal.type", "spec.loadBalancer.external.type"
	var out []want
	e := part.EndpointOf(c)
	switch e.Front {
	case part.KubeVIPFront:
		out = append(out, want{component: "kube-vip", parts: images, path: internal})
	case part.HostsFront:
		out = append(out, want{component: "keepalived", path: external}, want{component: string(e.Program) + "-package", path: external})
	}
	if e.OnNodes != "" {
		out = append(out, want{component: string(e.OnNodes), parts: images, path: internal})
	}
	return out
}

func dnsWants(c *manifest.Cluster) []want {
	ws := []want{{component: "coredns", parts: images, path: "spec.kubernetes.version"}}
	local := c.Spec.DNS.NodeLocalDNS
	on := len(local.ExternalZones) > 0
	if local.Enabled != nil {
		on = *local.Enabled
	}
	if on {
		ws = append(ws, want{component: "node-local-dns", parts: images, path: "spec.dns.nodelocaldns"})
	}
	return ws
}

func addonWants(c *manifest.Cluster) []want {
	var ws []want
	if part.HasOpenEBS(c) {
		ws = append(ws, want{component: part.OpenEBS, parts: images, path: "spec.storage.openebs"})
	}
	if part.HasNFS(c) {
		ws = append(ws, want{component: part.NFS, parts: images, path: "spec.storage.nfs"})
	}
	if c.Spec.Kubernetes.NodeFeatureDiscovery.Enabled {
		ws = append(ws, want{component: part.NFD, parts: images, path: "spec.kubernetes.nodeFeatureDiscovery"})
	}
	for i, a := range c.Spec.Addons {
		if a.Source == "" {
			ws = append(ws, want{component: a.Name, parts: files | images, version: a.Version, path: fmt.Sprintf("spec.addons[%d]", i), addon: true})
		}
	}
	return ws
}

// toolWants requires helm if the config has charts to install.
func toolWants(c *manifest.Cluster) []want {
	if part.NetworkOf(c).Chart {
		return []want{{component: "helm", parts: files, path: "spec.network.plugin"}}
	}
	if slices.ContainsFunc(c.Spec.Addons, func(a manifest.Addon) bool { return a.Form() == manifest.Chart }) {
		return []want{{component: "helm", parts: files, path: "spec.addons"}}
	}
	return nil
}
