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

// Check is the check that findings of this package belong to. Nobody can leave it out.
const Check = "preflight.existing-cluster"

// Bundle is what the bundle in hand would bring.
type Bundle struct {
	Components map[string]string // versions by component
	Lock       string            // "sha256:…"
}

// recordOf holds a config against a record.
type recordOf struct{ *manifest.Existing }

// Differs finds what install would not act on, or must not, in a cluster that was
// finished: fields, versions, and hosts that are gone from the config. b is nil where
// there is no bundle; then versions that only a lock knows are not compared.
func Differs(e *manifest.Existing, now *manifest.Cluster, b *Bundle) steps.Findings {
	r := recordOf{e}
	var out steps.Findings
	for _, c := range manifest.Fixed(r.Config, now) {
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
			out = append(out, steps.Finding{Host: h, Check: Check, What: "an older kubexm made the cluster, and its record does not say which versions of its components it has",
				Advice: "run it once with the bundle that the cluster was made with: the record says so then"})
		}
		return out
	}
	return append(out, r.versions(b.Components)...)
}

// fixture is a component whose version stays as it is in a cluster that exists.
type fixture struct {
	component string
	on        []string
}

func fixtures(c *manifest.Cluster) []fixture {
	nodes := []string{manifest.RoleMaster, manifest.RoleWorker}
	return []fixture{
		{"kubernetes", nodes}, {part.RuntimeOf(c).Name, nodes}, {"etcd", []string{manifest.RoleEtcd}}, {"etcd-image", []string{manifest.RoleEtcd}},
		{"coredns", []string{manifest.RoleMaster}}, {part.NetworkOf(c).Name, nodes},
	}
}

func (r recordOf) versions(now map[string]string) steps.Findings {
	var out steps.Findings
	for _, p := range fixtures(r.Config) {
		was, is := r.Components[p.component], now[p.component]
		// Kubernetes' own is a field of the config, and told as that.
		if was == "" || is == "" || was == is || p.component == "kubernetes" {
			continue
		}
		for _, h := range r.having(p.on) {
			out = append(out, steps.Finding{Host: h, Check: Check, What: fmt.Sprintf("%s: the cluster has %s, the bundle brings %s", strings.TrimSuffix(p.component, "-image"), was, is),
				Advice: fmt.Sprintf("install with a bundle that holds %s: this version of kubexm upgrades no cluster", was)})
		}
	}
	return out
}

// having names the hosts that have one of some roles in the cluster; all of them for
// no role.
func (r recordOf) having(roles []string) []string {
	var out []string
	for _, h := range r.Config.Spec.Hosts {
		if len(roles) == 0 || slices.ContainsFunc(roles, func(role string) bool { return r.has(h.Name, role) }) {
			out = append(out, h.Name)
		}
	}
	return out
}

// has tells whether a host has a role; the members of an etcd that kubeadm runs are
// the masters.
func (r recordOf) has(host, role string) bool {
	if role == manifest.RoleEtcd && part.StoreOf(r.Config).Kind != part.Service {
		role = manifest.RoleMaster
	}
	return slices.Contains(r.Config.RolesOf(host), role)
}

// hosts names the hosts that have one of some roles, for manifest.Effect.
func (r recordOf) hosts(roles []string) string {
	if names := r.having(roles); len(names) > 0 {
		return strings.Join(names, ", ")
	}
	return manifest.Anywhere(roles)
}

// anew is what is left to somebody who wants a cluster of another kind.
const anew = "or make another cluster: kubexm delete cluster -f CONFIG --yes, which destroys all data, then kubexm install --bundle ARCHIVE"

// field tells of one field that differs, on each host that has it.
func (r recordOf) field(c manifest.Change, now *manifest.Cluster) steps.Findings {
	who := r.having(c.Effect.On())
	if len(who) == 0 { // a registry's field, of a cluster that has no host with one
		who = r.having([]string{manifest.RoleMaster})
	}
	on := slices.DeleteFunc(who, func(name string) bool {
		_, stays := now.Host(name)
		return !stays
	})
	f := steps.Finding{Check: Check}
	switch {
	case c.Path == "spec.hosts":
		f.What = "is part of the cluster (" + cmp.Or(strings.Join(r.Config.RolesOf(c.Item), ", "), "without a role") + "), and the config does not name it"
		f.Advice = "name it again: this version of kubexm takes no single host out of a cluster; " + anew
		on = []string{c.Item}
	case strings.HasPrefix(c.Path, "spec.roleGroups."):
		f.What = fmt.Sprintf("%s: %s", c.Path, "the cluster has this host in it, the config has not")
		f.Advice = "name it there again: install takes no role from a host of a cluster; " + anew
		if c.Was == "" {
			f.What = fmt.Sprintf("%s: %s", c.Path, "the config has this host in it, the cluster has not")
			f.Advice = "take it out there, or give the role to a new host: install gives no further role to a host of a cluster"
		}
		on = []string{c.Item}
	case c.Path == "metadata.name":
		f.What = fmt.Sprintf("is a master of the cluster %s, and the config is that of %s", c.Was, c.Now)
		f.Advice = "use the config of the cluster " + c.Was + ", or name other hosts"
	case c.Path == "spec.kubernetes.version":
		f.What = fmt.Sprintf("%s: the cluster has %s, the config says %s", c.Path, c.Was, c.Now)
		f.Advice = fmt.Sprintf("write %s, and install with a bundle of it: this version of kubexm upgrades no cluster; %s", c.Was, anew)
	case c.Path == "spec.addons":
		f.What = fmt.Sprintf("%s: the cluster has the add-on %s, the config does not name it", c.Path, c.Item)
		f.Advice = "name it again: install takes no add-on out of a cluster; " + anew
	default:
		path := c.Path
		if strings.HasPrefix(path, "spec.hosts.") {
			on = []string{c.Item}
		} else if c.Item != "" {
			path += " (" + c.Item + ")"
		}
		f.What = fmt.Sprintf("%s: the cluster has %s, the config says %s", path, manifest.Short(c.Was), manifest.Short(c.Now))
		again := "leave it out again"
		if c.Was != "" {
			again = "write " + manifest.Short(c.Was) + " again"
		}
		f.Advice = again + ": install does not change it in a cluster that exists (the change " + c.Does(r.hosts) + "); " + anew
	}
	var out steps.Findings
	for _, h := range on {
		f.Host = h
		out = append(out, f)
	}
	return out
}
