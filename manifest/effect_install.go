package manifest

import (
	"slices"
	"strings"
)

// Install is what `kubexm install` does with a changed field in an existing cluster: the
// value of the struct tag install. A change of a field without the tag is refused, unless its
// effect is EffectTool.
type Install string

// The values of the struct tag install.
const (
	// InstallAll applies every change.
	InstallAll Install = "all"
	// InstallAdd applies additions and replacements, and refuses removals.
	InstallAdd Install = "add"
	// InstallSet applies every change, but refuses to remove the complete value.
	InstallSet Install = "set"
	// InstallOnce applies the first value, and refuses every other change.
	InstallOnce Install = "once"
	// InstallRemove applies removals, and refuses additions.
	InstallRemove Install = "take"
	// InstallLock is for versions: the locks of the bundles determine whether they differ.
	InstallLock Install = "lock"
	// InstallNew adds new hosts, and refuses every other change.
	InstallNew Install = "new"
	// InstallService applies every change if etcd is a service of its hosts, and refuses it if
	// kubeadm runs etcd.
	InstallService Install = "service"
)

// installs lists all values of the tag.
func installs() []Install {
	return []Install{InstallAll, InstallAdd, InstallSet, InstallOnce, InstallRemove, InstallLock, InstallNew, InstallService}
}

// Describe describes what install does with a change of a field with this effect.
func (i Install) Describe(e Effect) string {
	if e.Is(EffectTool) {
		return "applied"
	}
	return map[Install]string{
		"":             "refused",
		InstallAll:     "applied",
		InstallAdd:     "additions and replacements are applied; removals are refused",
		InstallSet:     "applied; refused if the complete value is removed",
		InstallOnce:    "applied if it had no value; every other change is refused",
		InstallRemove:  "removals are applied; additions are refused",
		InstallLock:    "refused if the bundle's lock has another version",
		InstallNew:     "new hosts are added; every other change is refused",
		InstallService: "applied if etcd is a service (type kubexm); refused if kubeadm runs etcd",
	}[i]
}

// RefusedChanges lists the changes from was to now that install refuses, if a finished cluster was
// installed from was. Versions that are determined by locks are not included.
func RefusedChanges(was, now *Cluster) []Change {
	return slices.DeleteFunc(Diff(was, now), func(c Change) bool { return !acted(c.Path) || !c.fixed(was, now) })
}

// fixed reports whether install refuses the change c in an existing cluster.
func (c Change) fixed(was, now *Cluster) bool {
	if c.Effect.Is(EffectTool) {
		return false
	}
	switch c.Install {
	case "":
		return true
	case InstallAdd:
		return c.Less
	case InstallRemove:
		return added(c)
	case InstallSet:
		return c.Now == "" && (!strings.HasPrefix(c.Path, "spec.dns.") || !now.ConfiguresDNS())
	case InstallOnce:
		return c.Was != "" && c.Was != "false"
	case InstallService:
		return now.Spec.Etcd.Type != "kubexm"
	case InstallNew:
		if c.Path == "spec.hosts" {
			return c.Less
		}
		_, before := was.Host(c.Item)
		_, after := now.Host(c.Item)
		return before && after && len(was.RolesOf(c.Item)) > 0 // a host that had no role counts as new
	case InstallAll, InstallLock:
	}
	return false
}

// added reports whether the list has a new entry.
func added(c Change) bool {
	return slices.ContainsFunc(strings.Split(c.Now, ", "), func(word string) bool {
		return word != "" && !slices.Contains(strings.Split(c.Was, ", "), word)
	})
}

// ConfiguresDNS reports whether the config has any settings for CoreDNS.
func (c *Cluster) ConfiguresDNS() bool {
	d := c.Spec.DNS
	return d.DNSEtcHosts != "" || d.CoreDNS.AdditionalConfigs != "" || d.CoreDNS.RewriteBlock != "" ||
		len(d.CoreDNS.ExternalZones)+len(d.CoreDNS.UpstreamDNSServers) > 0
}

// Host returns the host with a name.
func (c *Cluster) Host(name string) (Host, bool) {
	for i := range c.Spec.Hosts { // by index: a copy of each host costs more than its name
		if c.Spec.Hosts[i].Name == name {
			return c.Spec.Hosts[i], true
		}
	}
	return Host{}, false
}

// RolesOf returns the roles of a host, in the order of spec.roleGroups.
func (c *Cluster) RolesOf(host string) []string {
	var out []string
	for _, role := range []string{RoleEtcd, RoleMaster, RoleWorker, RoleRegistry, RoleLoadBalancer} {
		if c.Spec.RoleGroups.Has(role, host) {
			out = append(out, role)
		}
	}
	return out
}
