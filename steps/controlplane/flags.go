package controlplane

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
)

// MergeFlags merges flags with the user's own, which override flags of the same name.
func MergeFlags(ours manifest.Args, users manifest.Args) manifest.Args {
	out := slices.Clone(ours)
	for _, u := range users {
		out = slices.DeleteFunc(out, func(a manifest.Arg) bool { return a.Name == u.Name })
	}
	return append(out, users...)
}

// Flags returns the flags of a control plane component: ours, the feature gates, the
// hardening flags, and the user's own, which override all others.
func Flags(c *manifest.Cluster, component string, users manifest.Args, ours ...manifest.Arg) manifest.Args {
	return MergeFlags(slices.Concat(ours, featureGates(c), hardened(c, component, users)), users)
}

// NodeCIDRMaskFlags returns the flags for the size of the nodes' pod ranges, by IP family:
// kubeadm validates the pod ranges only against these flags. If the user sets a flag for the
// size, it returns none, because --node-cidr-mask-size excludes them.
func NodeCIDRMaskFlags(c *manifest.Cluster) manifest.Args {
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

// featureGates returns the flag for the feature gates, without those that this Kubernetes
// version has removed.
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
		if !manifest.GateRemoved(name, c.Spec.Kubernetes.Version) {
			out[name] = on
		}
	}
	return out
}

// hardened returns the hardening flags of a component. The API server rejects an
// authentication configuration together with authentication flags: then the flags of the
// config are used.
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

// knowsAnonymous reports whether the config has not disabled the feature gates that the
// authentication configuration needs.
func knowsAnonymous(c *manifest.Cluster) bool {
	for _, gate := range []string{"AnonymousAuthConfigurableEndpoints", "StructuredAuthenticationConfiguration"} {
		if on, written := c.Spec.Kubernetes.FeatureGates[gate]; written && !on {
			return false
		}
	}
	return true
}

// SANs returns the subject alternative names of the API servers' certificate, sorted.
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
