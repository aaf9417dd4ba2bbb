package manifest

import (
	"slices"
	"strings"
)

// Install says what `kubexm install` does today with a changed field in a cluster that
// exists: the value of the struct tag install. A field without one is refused, unless
// its effect is EffectTool: then it is taken.
type Install string

// What install does.
const (
	// InstallAll brings an existing cluster to the field.
	InstallAll Install = "all"
	// InstallAdd brings what was added or exchanged, and takes nothing away.
	InstallAdd Install = "add"
	// InstallSet brings an existing cluster to the field unless all of it was taken away.
	InstallSet Install = "set"
	// InstallTake is the reverse of InstallAdd: what was taken away alone.
	InstallTake Install = "take"
	// InstallLock is of a version: the locks of the bundles say whether it differs.
	InstallLock Install = "lock"
	// InstallNew adds new hosts, and does nothing else.
	InstallNew Install = "new"
	// InstallService is InstallAll where etcd is a service of its hosts, and none where
	// kubeadm runs it.
	InstallService Install = "service"
)

// installs lists all words that the tag takes.
func installs() []Install {
	return []Install{InstallAll, InstallAdd, InstallSet, InstallTake, InstallLock, InstallNew, InstallService}
}

// Does says in words what install does with a change of a field with this effect.
func (i Install) Does(e Effect) string {
	if e.Is(EffectTool) {
		return "taken"
	}
	return map[Install]string{
		"":             "refused",
		InstallAll:     "taken",
		InstallAdd:     "what is added or exchanged is taken; what is taken away is refused",
		InstallSet:     "taken; refused where nothing of it is left",
		InstallTake:    "what is taken away is taken; what is added is refused",
		InstallLock:    "refused where the bundle's lock has another version",
		InstallNew:     "new hosts are taken; everything else is refused",
		InstallService: "taken where etcd is a service (type kubexm); refused where kubeadm runs etcd",
	}[i]
}

// Fixed lists the changes from was to now that install does not act on where was is
// what a finished cluster was made of. Versions that locks choose are not among them.
func Fixed(was, now *Cluster) []Change {
	return slices.DeleteFunc(Diff(was, now), func(c Change) bool { return !acted(c.Path) || !c.fixed(was, now) })
}

// fixed tells whether install leaves an existing cluster as it is where c has changed.
func (c Change) fixed(was, now *Cluster) bool {
	if c.Effect.Is(EffectTool) {
		return false
	}
	switch c.Install {
	case "":
		return true
	case InstallAdd:
		return c.Less
	case InstallTake:
		return added(c)
	case InstallSet:
		return c.Now == "" && (!strings.HasPrefix(c.Path, "spec.dns.") || !now.ConfiguresDNS())
	case InstallService:
		return now.Spec.Etcd.Type != "kubexm"
	case InstallNew:
		if c.Path == "spec.hosts" {
			return c.Less
		}
		_, goes := was.Host(c.Item)
		_, stays := now.Host(c.Item)
		return goes && stays && len(was.RolesOf(c.Item)) > 0 // a host that had none is as good as new
	case InstallAll, InstallLock:
	}
	return false
}

// added tells whether a list has an entry that it had not.
func added(c Change) bool {
	return slices.ContainsFunc(strings.Split(c.Now, ", "), func(word string) bool {
		return word != "" && !slices.Contains(strings.Split(c.Was, ", "), word)
	})
}

// ConfiguresDNS tells whether the config says anything that CoreDNS is told.
func (c *Cluster) ConfiguresDNS() bool {
	d := c.Spec.DNS
	return d.DNSEtcHosts != "" || d.CoreDNS.AdditionalConfigs != "" || d.CoreDNS.RewriteBlock != "" ||
		len(d.CoreDNS.ExternalZones)+len(d.CoreDNS.UpstreamDNSServers) > 0
}

// Host gives the host of a name.
func (c *Cluster) Host(name string) (Host, bool) {
	i := slices.IndexFunc(c.Spec.Hosts, func(h Host) bool { return h.Name == name })
	if i < 0 {
		return Host{}, false
	}
	return c.Spec.Hosts[i], true
}

// RolesOf gives the roles of a host, in the order of spec.roleGroups.
func (c *Cluster) RolesOf(host string) []string {
	var out []string
	for _, role := range []string{RoleEtcd, RoleMaster, RoleWorker, RoleRegistry, RoleLoadBalancer} {
		if c.Spec.RoleGroups.Has(role, host) {
			out = append(out, role)
		}
	}
	return out
}
