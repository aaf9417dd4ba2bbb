package state

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
)

// Check is the check that findings of this package belong to. It cannot be skipped.
const Check = "preflight.existing-cluster"

// Bundle describes the current bundle.
type Bundle struct {
	Components map[string]string // versions by component
	Lock       string            // "sha256:…"
}

// recordOf compares a config with a record.
type recordOf struct{ *manifest.Existing }

// Differs finds differences that install would not apply, or must not, in a finished cluster:
// fields, versions, and hosts that are missing in the config. Without a bundle, b is nil; then
// versions that only a lock contains are not compared.
func Differs(e *manifest.Existing, now *manifest.Cluster, b *Bundle) steps.Findings {
	r := recordOf{e}
	var out steps.Findings
	for _, c := range manifest.RefusedChanges(r.Config, now) {
		out = append(out, r.field(c, now)...)
	}
	if b == nil {
		return out
	}
	if r.Components == nil {
		if r.Lock == b.Lock {
			return out
		}
		for _, h := range r.having([]string{manifest.RoleMaster}) {
			out = append(out, steps.Finding{Host: h, Check: Check, What: "the cluster was created by an older kubexm, and its record does not list the versions of its components",
				Advice: "run install once with the bundle that the cluster was created from: it adds the versions to the record"})
		}
		return out
	}
	return append(out, r.versions(b.Components)...)
}

// fixedComponent is a component whose version does not change in an existing cluster.
type fixedComponent struct {
	component string
	on        []string
}

func fixedComponents(c *manifest.Cluster) []fixedComponent {
	nodes := []string{manifest.RoleMaster, manifest.RoleWorker}
	return []fixedComponent{
		{"kubernetes", nodes}, {part.RuntimeOf(c).Name, nodes}, {"etcd", []string{manifest.RoleEtcd}}, {"etcd-image", []string{manifest.RoleEtcd}},
		{"coredns", []string{manifest.RoleMaster}}, {part.NetworkOf(c).Name, nodes},
	}
}

func (r recordOf) versions(now map[string]string) steps.Findings {
	var out steps.Findings
	for _, p := range fixedComponents(r.Config) {
		was, is := r.Components[p.component], now[p.component]
		// The version of Kubernetes is a field of the config, and reported as such.
		if was == "" || is == "" || was == is || p.component == "kubernetes" {
			continue
		}
		for _, h := range r.having(p.on) {
			out = append(out, steps.Finding{Host: h, Check: Check, What: fmt.Sprintf("%s: the cluster has %s, the bundle contains %s", strings.TrimSuffix(p.component, "-image"), was, is),
				Advice: fmt.Sprintf("install with a bundle that contains %s: this version of kubexm does not upgrade clusters", was)})
		}
	}
	return out
}

// having returns the hosts that have one of some roles in the cluster; all hosts if there are
// no roles.
func (r recordOf) having(roles []string) []string {
	var out []string
	for _, h := range r.Config.Spec.Hosts {
		if len(roles) == 0 || slices.ContainsFunc(roles, func(role string) bool { return r.has(h.Name, role) }) {
			out = append(out, h.Name)
		}
	}
	return out
}

// has reports whether a host has a role; kubeadm runs the etcd members on the masters.
func (r recordOf) has(host, role string) bool {
	if role == manifest.RoleEtcd && part.StoreOf(r.Config).Kind != part.Service {
		role = manifest.RoleMaster
	}
	return slices.Contains(r.Config.RolesOf(host), role)
}

// hosts returns the hosts that have one of some roles, for manifest.Effect.
func (r recordOf) hosts(roles []string) string {
	if names := r.having(roles); len(names) > 0 {
		return strings.Join(names, ", ")
	}
	return manifest.AnyHosts(roles)
}

// newCluster is the advice for a user who wants a different cluster.
const newCluster = "or create a new cluster: kubexm delete cluster -f CONFIG --yes, which destroys all data, then kubexm install --bundle ARCHIVE"

// field returns the findings about one field that differs, on each host that has it.
func (r recordOf) field(c manifest.Change, now *manifest.Cluster) steps.Findings {
	who := r.having(c.Effect.On())
	if len(who) == 0 { // a registry field, in a cluster without a registry host
		who = r.having([]string{manifest.RoleMaster})
	}
	on := slices.DeleteFunc(who, func(name string) bool {
		_, stays := now.Host(name)
		return !stays
	})
	f := steps.Finding{Check: Check}
	switch {
	case c.Path == "spec.hosts":
		f.What = "is part of the cluster (" + cmp.Or(strings.Join(r.Config.RolesOf(c.Item), ", "), "without a role") + "), but the config does not list it"
		f.Advice = "list it again: this version of kubexm cannot remove a single host from a cluster; " + newCluster
		on = []string{c.Item}
	case strings.HasPrefix(c.Path, "spec.roleGroups."):
		f.What = fmt.Sprintf("%s: %s", c.Path, "the host has this role in the cluster, but not in the config")
		f.Advice = "list the host there again: install removes no role from a host of a cluster; " + newCluster
		if c.Was == "" {
			f.What = fmt.Sprintf("%s: %s", c.Path, "the host has this role in the config, but not in the cluster")
			f.Advice = "remove the host there, or give the role to a new host: install adds no role to a host of a cluster"
		}
		on = []string{c.Item}
	case c.Path == "metadata.name":
		f.What = fmt.Sprintf("is a master of cluster %s, but the config describes cluster %s", c.Was, c.Now)
		f.Advice = "use the config of the cluster " + c.Was + ", or list other hosts"
	case c.Path == "spec.kubernetes.version":
		f.What = fmt.Sprintf("%s: the cluster has %s, the config has %s", c.Path, c.Was, c.Now)
		f.Advice = fmt.Sprintf("write %s, and install with a bundle for that version: this version of kubexm does not upgrade clusters; %s", c.Was, newCluster)
	case c.Path == "spec.addons":
		f.What = fmt.Sprintf("%s: the cluster has the add-on %s, the config does not list it", c.Path, c.Item)
		f.Advice = "list it again: install removes no add-on from a cluster; " + newCluster
	default:
		path := c.Path
		if strings.HasPrefix(path, "spec.hosts.") {
			on = []string{c.Item}
		} else if c.Item != "" {
			path += " (" + c.Item + ")"
		}
		f.What = fmt.Sprintf("%s: the cluster has %s, the config has %s", path, manifest.Abbreviate(c.Was), manifest.Abbreviate(c.Now))
		again := "remove it again"
		if c.Was != "" {
			again = "write " + manifest.Abbreviate(c.Was) + " again"
		}
		f.Advice = again + ": install does not change it in an existing cluster (the change " + c.DescribeEffect(r.hosts) + "); " + newCluster
	}
	var out steps.Findings
	for _, h := range on {
		f.Host = h
		out = append(out, f)
	}
	return out
}
