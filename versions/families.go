package versions

import (
	"fmt"

	"github.com/mensylisir/kubexm/manifest"
)

// parts of a component that a config asks for.
type parts int

const (
	files parts = 1 << iota
	images
)

// want is one component that a config asks for.
type want struct {
	component string
	parts     parts
	version   string // what the config says; "" takes the default
	path      string // where in the config, for problems
}

// families decide, each for its part of the config, which components are
// wanted. Together they are the whole answer.
var families = []func(*manifest.Cluster) []want{
	kubernetesWants, etcdWants, runtimeWants, networkWants, registryWants,
	loadBalancerWants, dnsWants, addonWants, toolWants,
}

func kubernetesWants(c *manifest.Cluster) []want {
	const path = "spec.kubernetes.version"
	ws := []want{
		{"kubelet", files, "", path},
		{"kubectl", files, "", path},
		{"pause", images, "", path},
	}
	part := files
	if c.Spec.Kubernetes.Type != "kubexm" {
		part = images
		ws = append(ws, want{"kubeadm", files, "", path})
	}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"} {
		ws = append(ws, want{name, part, "", path})
	}
	return ws
}

func etcdWants(c *manifest.Cluster) []want {
	e := c.Spec.Etcd
	switch e.Type {
	case "external":
		return nil
	case "kubeadm":
		return []want{{"etcd-image", images, e.Version, "spec.etcd.version"}}
	default:
		return []want{{"etcd", files, e.Version, "spec.etcd.version"}}
	}
}

func runtimeWants(c *manifest.Cluster) []want {
	r := c.Spec.Runtime
	const path, chosen = "spec.runtime.type", "spec.runtime.version"
	ws := []want{{"cni-plugins", files, "", path}, {"crictl", files, "", path}}
	switch r.Type {
	case "docker":
		return append(ws, want{"docker", files, r.Version, chosen}, want{"cri-dockerd", files, "", path})
	case "cri-o":
		return append(ws, want{"cri-o", files, r.Version, chosen})
	case "isulad":
		return append(ws, want{"isulad", files, r.Version, chosen})
	default:
		return append(ws, want{"containerd", files, r.Version, chosen}, want{"runc", files, "", path}, want{"nerdctl", files, "", path})
	}
}

func networkWants(c *manifest.Cluster) []want {
	n := c.Spec.Network
	var ws []want
	if n.Plugin != "none" {
		ws = append(ws, want{n.Plugin, files | images, n.Version, "spec.network.version"})
	}
	if n.Plugin == "calico" {
		ws = append(ws, want{"calicoctl", files, n.Version, "spec.network.version"})
	}
	if n.Multus.Enabled {
		ws = append(ws, want{"multus", files | images, "", "spec.network.multus"})
	}
	return ws
}

func registryWants(c *manifest.Cluster) []want {
	r := c.Spec.Registry
	switch r.Type {
	case "registry":
		return []want{{"registry", files, r.Version, "spec.registry.version"}}
	case "harbor":
		// Harbor runs in containers of Docker on its own host, whatever the nodes run.
		return []want{
			{"harbor", files, r.Version, "spec.registry.version"},
			{"docker", files, dockerVersion(c), "spec.registry.type"},
			{"docker-compose", files, "", "spec.registry.type"},
		}
	}
	return nil
}

// dockerVersion is the nodes' own where they run Docker too: one is enough.
func dockerVersion(c *manifest.Cluster) string {
	if c.Spec.Runtime.Type == "docker" {
		return c.Spec.Runtime.Version
	}
	return ""
}

func loadBalancerWants(c *manifest.Cluster) []want {
	lb := c.Spec.LoadBalancer
	const internal, external = "spec.loadBalancer.internal.type", "spec.loadBalancer.external.type"
	switch {
	case lb.Mode == "internal" && lb.Internal.Type != "":
		return []want{{lb.Internal.Type, images, "", internal}}
	case lb.Mode == "external" && lb.External.Type == "kubexm-kh":
		return []want{{"keepalived", files, "", external}, {"haproxy-package", files, "", external}}
	case lb.Mode == "external" && lb.External.Type == "kubexm-kn":
		return []want{{"keepalived", files, "", external}, {"nginx-package", files, "", external}}
	}
	return nil
}

func dnsWants(c *manifest.Cluster) []want {
	ws := []want{{"coredns", images, "", "spec.kubernetes.version"}}
	local := c.Spec.DNS.NodeLocalDNS
	on := len(local.ExternalZones) > 0
	if local.Enabled != nil {
		on = *local.Enabled
	}
	if on {
		ws = append(ws, want{"node-local-dns", images, "", "spec.dns.nodelocaldns"})
	}
	return ws
}

func addonWants(c *manifest.Cluster) []want {
	var ws []want
	if c.Spec.Storage.OpenEBS.BasePath != "" {
		ws = append(ws, want{"openebs", files | images, "", "spec.storage.openebs"})
	}
	for i, a := range c.Spec.Addons {
		if a.Source == "" {
			ws = append(ws, want{a.Name, files | images, a.Version, fmt.Sprintf("spec.addons[%d]", i)})
		}
	}
	return ws
}

// toolWants gives helm to every config that has charts to install.
func toolWants(c *manifest.Cluster) []want {
	charts := map[string]bool{"cilium": true, "kube-ovn": true, "hybridnet": true}
	if len(c.Spec.Addons) > 0 || c.Spec.Storage.OpenEBS.BasePath != "" || charts[c.Spec.Network.Plugin] {
		return []want{{"helm", files, "", "spec.addons"}}
	}
	return nil
}
