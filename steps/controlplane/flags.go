package controlplane

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
)

// With puts ours before the user's own: theirs count.
func With(ours manifest.Args, users manifest.Args) manifest.Args {
	out := slices.Clone(ours)
	for _, u := range users {
		out = slices.DeleteFunc(out, func(a manifest.Arg) bool { return a.Name == u.Name })
	}
	return append(out, users...)
}

// Flags are the flags of a component of the control plane: ours, the feature gates, what
// makes it hard to break into, and users' own, which count.
func Flags(c *manifest.Cluster, component string, users manifest.Args, ours ...manifest.Arg) manifest.Args {
	return With(slices.Concat(ours, featureGates(c), hardened(c, component, users)), users)
}

// Masks are the sizes of the nodes' ranges, by family: kubeadm holds the pods'
// ranges against these flags alone. The older flag for both excludes them.
func Masks(c *manifest.Cluster) manifest.Args {
	k, out := c.Spec.Kubernetes, manifest.Args{}
	if slices.ContainsFunc(k.ControllerManager.ExtraArgs, func(a manifest.Arg) bool { return strings.HasPrefix(a.Name, "node-cidr-mask-size") }) {
		return out
	}
	for _, r := range c.Spec.Network.KubePodsCIDR {
		a := manifest.Arg{Name: "node-cidr-mask-size-ipv4", Value: strconv.Itoa(k.NodeCIDRMaskSize)}
		if strings.Contains(r, ":") {
			a = manifest.Arg{Name: "node-cidr-mask-size-ipv6", Value: strconv.Itoa(k.NodeCIDRMaskSizeIPv6)}
		}
		out = append(out, a)
	}
	return out
}

// featureGates as one flag; gates that the version no longer knows are left out.
func featureGates(c *manifest.Cluster) manifest.Args {
	var words []string
	for name, on := range knownGates(c) {
		words = append(words, fmt.Sprintf("%s=%t", name, on))
	}
	if len(words) == 0 {
		return nil
	}
	slices.Sort(words)
	return manifest.Args{{Name: "feature-gates", Value: strings.Join(words, ",")}}
}

func knownGates(c *manifest.Cluster) map[string]bool {
	out := map[string]bool{}
	for name, on := range c.Spec.Kubernetes.FeatureGates {
		if !manifest.GateGone(name, c.Spec.Kubernetes.Version) {
			out[name] = on
		}
	}
	return out
}

// hardened are the flags of a component that make it hard to break into. The API
// server refuses a file about who comes in beside flags about it: those of the
// config count.
func hardened(c *manifest.Cluster, component string, users manifest.Args) manifest.Args {
	var out manifest.Args
	for _, s := range c.SettingsOf(component) {
		if s.Name == "authentication-config" && (!knowsAnonymous(c) || slices.ContainsFunc(users, func(a manifest.Arg) bool {
			return a.Name == "anonymous-auth" || strings.HasPrefix(a.Name, "oidc-")
		})) {
			continue
		}
		out = append(out, manifest.Arg{Name: s.Name, Value: s.Value})
	}
	return out
}

// knowsAnonymous: the config may have switched off what the file needs.
func knowsAnonymous(c *manifest.Cluster) bool {
	for _, gate := range []string{"AnonymousAuthConfigurableEndpoints", "StructuredAuthenticationConfiguration"} {
		if on, written := c.Spec.Kubernetes.FeatureGates[gate]; written && !on {
			return false
		}
	}
	return true
}

// SANs are the names and addresses that the certificate of an API server is for, sorted.
func SANs(c *manifest.Cluster) []string {
	k := c.Spec.Kubernetes
	e := part.EndpointOf(c)
	sans := append([]string{e.Domain}, k.APIServer.CertSANs...)
	if e.VIP != "" {
		sans = append(sans, e.VIP)
	}
	for _, m := range c.HostsWith(manifest.RoleMaster) {
		sans = append(sans, m.Name, m.Name+"."+k.ClusterName, m.Address) // as /etc/hosts has them
		sans = append(sans, m.InternalAddress...)
	}
	slices.Sort(sans)
	return slices.Compact(sans)
}
