package manifest

import (
	"slices"
	"strings"
)

// Effect says what `kubexm install` does on a cluster that exists when a field of its
// config has changed.
type Effect string

// The effects.
const (
	// EffectTool is a field of how kubexm works, or of what a bundle holds: hosts do
	// not know it.
	EffectTool Effect = "tool"
	// EffectInstall is a field to which install brings an existing cluster.
	EffectInstall Effect = "install"
	// EffectAdd is one of which install brings what was added or exchanged, and takes
	// nothing away.
	EffectAdd Effect = "add"
	// EffectSet is one to which install brings an existing cluster unless all of it was
	// taken away.
	EffectSet Effect = "set"
	// EffectTake is the reverse of EffectAdd: install acts on what was taken away alone.
	EffectTake Effect = "take"
	// EffectVersion is a version: the locks of the bundles say whether it differs.
	EffectVersion Effect = "version"
	// EffectCreate is a field that is acted on while a cluster or a host is made, and
	// never again.
	EffectCreate Effect = "create"
	// EffectHosts are hosts and their roles: new hosts are added, and nothing else.
	EffectHosts Effect = "hosts"
	// EffectService is EffectInstall where etcd is a service of its hosts, and
	// EffectCreate where kubeadm runs it.
	EffectService Effect = "service"
)

// Effected is a field, with everything under it, and its effect.
type Effected struct {
	Path   string
	Effect Effect
	On     []string // the roles of the hosts that have it; none where Change.Item is the host
}

// Effects lists all fields that something acts on. Of two entries that a path lies
// under, the longer one counts.
func Effects() []Effected {
	masters, members := []string{RoleMaster}, []string{RoleEtcd}
	nodes, registry := []string{RoleMaster, RoleWorker}, []string{RoleRegistry}
	var out []Effected
	add := func(e Effect, on []string, paths ...string) {
		for _, p := range paths {
			out = append(out, Effected{p, e, on})
		}
	}
	add(EffectTool, nil, "apiVersion", "kind", "spec.ssh", "spec.bundle", "spec.sources", "spec.etcd.preserveData")
	add(EffectCreate, masters, "metadata.name", "spec.controlPlaneEndpoint", "spec.loadBalancer", "spec.storage",
		"spec.kubernetes.type", "spec.kubernetes.clusterName", "spec.kubernetes.apiServer", "spec.kubernetes.controllerManager", "spec.kubernetes.scheduler",
		"spec.kubernetes.hardening", "spec.kubernetes.nodeCidrMaskSize", "spec.kubernetes.nodeCidrMaskSizeIPv6", "spec.dns.nodelocaldns")
	add(EffectCreate, nodes, "spec.kubernetes.version", "spec.kubernetes.kubelet", "spec.kubernetes.kubeProxy", "spec.kubernetes.maxPods", "spec.kubernetes.podPidsLimit",
		"spec.kubernetes.featureGates", "spec.runtime.type", "spec.runtime.containerd.dataDir",
		"spec.network.plugin", "spec.network.kubePodsCIDR", "spec.network.kubeServiceCIDR", "spec.network.flannel", "spec.network.multus")
	add(EffectInstall, nodes, "spec.runtime.containerd.registryMirrors")
	add(EffectAdd, nodes, "spec.runtime.containerd.insecureRegistries")
	add(EffectVersion, nodes, "spec.runtime.version", "spec.network.version")
	add(EffectVersion, members, "spec.etcd.version")
	add(EffectCreate, members, "spec.etcd.type", "spec.etcd.dataDir", "spec.etcd.external.endpoints")
	add(EffectInstall, masters, "spec.etcd.external.caFile", "spec.etcd.external.certFile", "spec.etcd.external.keyFile")
	add(EffectService, members, "spec.etcd")
	add(EffectCreate, registry, "spec.registry.type", "spec.registry.privateRegistry", "spec.registry.registryDataDir")
	add(EffectInstall, registry, "spec.registry.version", "spec.registry.namespaceOverride", "spec.registry.auths.username", "spec.registry.auths.password",
		"spec.registry.auths.skipTLSVerify", "spec.registry.auths.plainHTTP", "spec.registry.auths.certsPath")
	add(EffectAdd, nodes, "spec.registry.auths")
	add(EffectAdd, masters, "spec.addons")
	add(EffectSet, masters, "spec.dns")
	add(EffectInstall, masters, "spec.addons.source", "spec.addons.version", "spec.addons.values")
	add(EffectCreate, masters, "spec.addons.type", "spec.addons.namespace")
	add(EffectInstall, nil, "spec.extra.hosts")
	add(EffectSet, nil, "spec.extra.resolves", "spec.system.ntpServers", "spec.system.timezone")
	add(EffectAdd, nil, "spec.system.rpms", "spec.system.debs")
	add(EffectTake, nil, "spec.system.keep")
	add(EffectHosts, nil, "spec.hosts", "spec.roleGroups")
	add(EffectCreate, nil, "spec.hosts.internalAddress", "spec.hosts.arch")
	add(EffectAdd, nil, "spec.hosts.labels", "spec.hosts.taints")
	for _, login := range []string{"address", "port", "user", "password", "privateKeyPath", "passphrase", "agent", "hostKeyPolicy", "hostKey", "connectionTimeout", "sudoPassword", "jumpHost"} {
		add(EffectTool, nil, "spec.hosts."+login)
	}
	return out
}

// EffectOf gives the effect of the field at a path of the config, and of those under
// it; ok is false for a field that nothing acts on.
func EffectOf(path string) (e Effected, ok bool) {
	for _, x := range Effects() {
		if (path == x.Path || strings.HasPrefix(path, x.Path+".")) && len(x.Path) > len(e.Path) {
			e, ok = x, true
		}
	}
	return e, ok && acted(path)
}

// acted tells whether something acts on the field at a path, or on one under it.
func acted(path string) bool {
	return slices.ContainsFunc(Used(), func(u string) bool {
		return u == path || strings.HasPrefix(u, path+".") || strings.HasPrefix(path, u+".")
	})
}

// ConfiguresDNS tells whether the config says anything that CoreDNS is told.
func (c *Cluster) ConfiguresDNS() bool {
	d := c.Spec.DNS
	return d.DNSEtcHosts != "" || d.CoreDNS.AdditionalConfigs != "" || d.CoreDNS.RewriteBlock != "" ||
		len(d.CoreDNS.ExternalZones)+len(d.CoreDNS.UpstreamDNSServers) > 0
}

// Fixed lists the changes from was to now that install does not act on where was is
// what a finished cluster was made of. Versions that locks choose are not among them.
func Fixed(was, now *Cluster) []Change {
	var out []Change
	for _, c := range Diff(was, now) {
		if e, ok := EffectOf(c.Path); ok && e.fixed(c, was, now) {
			out = append(out, c)
		}
	}
	return out
}

// fixed tells whether install leaves an existing cluster as it is where c has changed.
func (e Effected) fixed(c Change, was, now *Cluster) bool {
	switch e.Effect {
	case EffectCreate:
		return true
	case EffectAdd:
		return c.Less
	case EffectTake:
		return added(c)
	case EffectSet:
		return c.Now == "" && (e.Path != "spec.dns" || !now.ConfiguresDNS())
	case EffectService:
		return now.Spec.Etcd.Type != "kubexm"
	case EffectHosts:
		if c.Path == "spec.hosts" {
			return c.Less
		}
		_, goes := was.Host(c.Item)
		_, stays := now.Host(c.Item)
		return goes && stays && len(was.RolesOf(c.Item)) > 0 // a host that had none is as good as new
	}
	return false
}

// added tells whether a list has an entry that it had not.
func added(c Change) bool {
	return slices.ContainsFunc(strings.Split(c.Now, ", "), func(word string) bool {
		return word != "" && !slices.Contains(strings.Split(c.Was, ", "), word)
	})
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
		if slices.Contains(c.Spec.RoleGroups.Names(role), host) {
			out = append(out, role)
		}
	}
	return out
}
