package manifest

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// Waiting is a field, with everything under it, that is read and checked and
// that nothing acts on yet.
type Waiting struct {
	Path string // "spec.system"
	For  string // the work that will act on it
	// Of is the Choice that refuses the field, where it holds the settings of a value
	// that cannot be installed: "" where the field is refused for itself.
	Of string
	// asks tells whether a config wants what the field stands for; nil where Of is set.
	asks func(*Spec) bool
}

// NotYetBuilt lists what waits. Whoever builds a thing takes its line out. A
// test holds this list and Used against the fields that exist.
func NotYetBuilt() []Waiting {
	const (
		balance  = "load balancers"
		services = "Kubernetes as services of the host"
		backup   = "backups of etcd"
		calico   = "the plugin calico"
		runtime  = "spec.runtime.type"
		plugin   = "spec.network.plugin"
	)
	return []Waiting{
		{"spec.roleGroups.loadbalancer", balance, "", func(s *Spec) bool { return len(s.RoleGroups.LoadBalancer) > 0 }},
		{"spec.loadBalancer.external.keepalived", balance, "spec.loadBalancer.external.type", nil},
		{"spec.loadBalancer.internal", balance, "", func(s *Spec) bool { return s.LoadBalancer.Internal.Type != "" }},
		{"spec.kubernetes.kubeProxy.extraArgs", services + ": kubeadm's kube-proxy takes no flags", "", func(s *Spec) bool { return len(s.Kubernetes.KubeProxy.ExtraArgs) > 0 }},
		{"spec.kubernetes.autoRenewCerts", "certificates that renew themselves", "", func(s *Spec) bool { return s.Kubernetes.AutoRenewCerts }},
		{"spec.kubernetes.kata", "Kata Containers", "", func(s *Spec) bool { return s.Kubernetes.Kata.Enabled }},
		{"spec.kubernetes.nodeFeatureDiscovery", "node feature discovery", "", func(s *Spec) bool { return s.Kubernetes.NodeFeatureDiscovery.Enabled }},
		{"spec.runtime.docker", "docker as the runtime", runtime, nil}, {"spec.runtime.cri-o", "CRI-O as the runtime", runtime, nil},
		{"spec.runtime.isulad", "iSulad as the runtime", runtime, nil},
		{"spec.etcd.backupDir", backup, "", func(s *Spec) bool { return s.Etcd.BackupDir != "" }},
		{"spec.etcd.backupPeriodHours", backup, "", func(s *Spec) bool { return s.Etcd.BackupPeriodHours != 0 }},
		{"spec.etcd.keepBackupNumber", backup, "", func(s *Spec) bool { return s.Etcd.KeepBackupNumber != 0 }},
		{"spec.network.ippool", calico, plugin, nil}, {"spec.network.calico", calico, plugin, nil},
		{"spec.network.multus", "installing multus", "", func(s *Spec) bool { return s.Network.Multus.Enabled }},
		{"spec.storage", "storage", "", func(s *Spec) bool { return s.Storage.OpenEBS.BasePath != "" }},
		{"spec.registry.harborConfig", "Harbor", "spec.registry.type", nil},
		{"spec.dns.nodelocaldns", "node-local DNS", "", func(s *Spec) bool { return s.DNS.NodeLocalDNS.Enabled != nil && *s.DNS.NodeLocalDNS.Enabled }},
		{"spec.monitoring", "monitoring", "", func(s *Spec) bool { return s.Monitoring.Enabled }},
	}
}

// Used lists the fields that something acts on today: building a bundle,
// installing a cluster, or both. One that stands under a mapping that waits
// decides what is in the bundle, and nothing installs it yet.
func Used() []string {
	used := []string{
		"apiVersion", "kind", "metadata.name",
		"spec.roleGroups.etcd", "spec.roleGroups.master", "spec.roleGroups.worker", "spec.roleGroups.registry",
		"spec.controlPlaneEndpoint.domain", "spec.controlPlaneEndpoint.address", "spec.controlPlaneEndpoint.port", "spec.controlPlaneEndpoint.externalDNS",
		"spec.loadBalancer.mode", "spec.loadBalancer.external.type", "spec.loadBalancer.internal.type",
		"spec.kubernetes.type", "spec.kubernetes.version", "spec.kubernetes.clusterName",
		"spec.kubernetes.apiServer.extraArgs", "spec.kubernetes.apiServer.certSANs", "spec.kubernetes.apiServer.serviceNodePortRange",
		"spec.kubernetes.controllerManager.extraArgs", "spec.kubernetes.scheduler.extraArgs",
		"spec.kubernetes.kubelet.extraArgs", "spec.kubernetes.kubelet.cgroupDriver",
		"spec.kubernetes.kubeProxy.mode", "spec.kubernetes.kubeProxy.masqueradeAll", "spec.kubernetes.kubeProxy.ipvs.excludeCIDRs",
		"spec.kubernetes.maxPods", "spec.kubernetes.podPidsLimit", "spec.kubernetes.nodeCidrMaskSize", "spec.kubernetes.nodeCidrMaskSizeIPv6",
		"spec.kubernetes.hardening.relax", "spec.kubernetes.hardening.podSecurity", "spec.kubernetes.hardening.privilegedNamespaces",
		"spec.kubernetes.featureGates", "spec.runtime.type", "spec.runtime.version",
		"spec.runtime.containerd.registryMirrors", "spec.runtime.containerd.insecureRegistries", "spec.runtime.containerd.dataDir",
		"spec.etcd.type", "spec.etcd.version", "spec.etcd.dataDir", "spec.etcd.extraArgs", "spec.etcd.heartbeatInterval", "spec.etcd.electionTimeout",
		"spec.etcd.snapshotCount", "spec.etcd.autoCompactionRetention", "spec.etcd.metrics", "spec.etcd.quotaBackendBytes", "spec.etcd.maxRequestBytes",
		"spec.etcd.maxSnapshots", "spec.etcd.maxWals", "spec.etcd.logLevel", "spec.etcd.preserveData",
		"spec.etcd.external.endpoints", "spec.etcd.external.caFile", "spec.etcd.external.certFile", "spec.etcd.external.keyFile",
		"spec.network.plugin", "spec.network.version", "spec.network.kubePodsCIDR", "spec.network.kubeServiceCIDR", "spec.network.flannel.backend",
		"spec.network.multus.enabled", "spec.storage.openebs.basePath",
		"spec.registry.type", "spec.registry.version", "spec.registry.privateRegistry", "spec.registry.namespaceOverride", "spec.registry.registryDataDir",
		"spec.registry.auths.username", "spec.registry.auths.password", "spec.registry.auths.pullUsername", "spec.registry.auths.pullPassword",
		"spec.registry.auths.skipTLSVerify", "spec.registry.auths.plainHTTP", "spec.registry.auths.certsPath",
		"spec.addons.name", "spec.addons.type", "spec.addons.source", "spec.addons.version", "spec.addons.namespace", "spec.addons.values",
		"spec.dns.dnsEtcHosts", "spec.dns.coredns.additionalConfigs", "spec.dns.coredns.rewriteBlock", "spec.dns.coredns.upstreamDNSServers",
		"spec.dns.coredns.externalZones.zones", "spec.dns.coredns.externalZones.nameservers", "spec.dns.coredns.externalZones.cache",
		"spec.dns.coredns.externalZones.rewrite", "spec.dns.nodelocaldns.enabled",
		"spec.extra.hosts.domain", "spec.extra.hosts.address", "spec.extra.resolves.address",
		"spec.system.ntpServers", "spec.system.timezone", "spec.system.keep",
		"spec.system.rpms", "spec.system.debs", "spec.bundle.operatingSystems.name", "spec.bundle.operatingSystems.releases", "spec.bundle.operatingSystems.format",
		"spec.bundle.operatingSystems.repositories", "spec.bundle.operatingSystems.keys",
		"spec.bundle.platforms", "spec.bundle.kubernetesVersions", "spec.bundle.images.reference", "spec.bundle.images.digest",
		"spec.bundle.files.name", "spec.bundle.files.address", "spec.bundle.files.sha256", "spec.bundle.files.platform",
		"spec.bundle.trust.keys", "spec.bundle.trust.trustedRoot", "spec.bundle.trust.certificateIdentity", "spec.bundle.trust.certificateOIDCIssuer",
		"spec.bundle.trust.allowUnsigned",
		"spec.sources.zone", "spec.sources.replace.from", "spec.sources.replace.to", "spec.sources.replace.plainHTTP", "spec.sources.replace.flatten",
		"spec.sources.caFile", "spec.sources.dockerConfig",
	}
	for _, f := range []string{"name", "address", "internalAddress", "arch", "labels", "taints.key", "taints.value", "taints.effect"} {
		used = append(used, "spec.hosts."+f)
	}
	login := []string{
		"port", "user", "password", "privateKeyPath", "passphrase", "agent", "hostKeyPolicy", "hostKey", "connectionTimeout",
	}
	for _, at := range []string{"spec.hosts.", "spec.ssh."} {
		used = append(used, at+"sudoPassword", at+"jumpHost.address")
		for _, f := range login {
			used = append(used, at+f, at+"jumpHost."+f)
		}
	}
	return used
}

// Choice is a field of which some values alone can be installed yet. The others
// decide what is in the bundle.
type Choice struct {
	Path  string   // "spec.network.plugin"
	Built []string // values that can be installed
	value func(*Cluster) string
	how   string // what to do instead of another value, beside writing one of these
}

// Choices lists the fields that can be installed with some of their values only: the tag
// built, beside enum, says which. A field without a value asks for nothing.
func Choices() []Choice {
	return []Choice{
		{"spec.loadBalancer.external.type", words[ExternalLoadBalancer]("Type", "built"), func(c *Cluster) string { return c.Spec.LoadBalancer.External.Type }, ""},
		{"spec.kubernetes.type", words[Kubernetes]("Type", "built"), func(c *Cluster) string { return c.Spec.Kubernetes.Type }, ""},
		{"spec.runtime.type", words[Runtime]("Type", "built"), func(c *Cluster) string { return c.Spec.Runtime.Type }, ""},
		{"spec.network.plugin", words[Network]("Plugin", "built"), func(c *Cluster) string { return c.Spec.Network.Plugin }, ""},
		{"spec.registry.type", words[Registry]("Type", "built"), func(c *Cluster) string { return cmp.Or(c.Spec.Registry.Type, "none") },
			"give a host the role registry, or name one that exists as privateRegistry with type: external"},
	}
}

// NotInstallable lists, by field, all that c asks for and that this version cannot
// install: nil where it can be installed. It can be built into a bundle all the same.
// A config without hosts is for a bundle alone, and nothing else of it is looked at.
func (c *Cluster) NotInstallable() Problems {
	if len(c.Spec.Hosts) == 0 {
		return Problems{{Path: "spec.hosts", Message: "has no host", Advice: "list the machines of the cluster"}}
	}
	out := c.NotSupported()
	for _, w := range NotYetBuilt() {
		if w.asks != nil && w.asks(&c.Spec) {
			out = append(out, Problem{Path: w.Path, Message: "cannot be installed yet: waits for " + w.For, Advice: "leave it out"})
		}
	}
	return append(out, c.notCarried()...)
}

// NotSupported lists the choices of c that there are no plans for: neither one that
// makes such a cluster nor one that deletes it.
func (c *Cluster) NotSupported() Problems {
	var out Problems
	for _, o := range Choices() {
		if v := o.value(c); v != "" && !slices.Contains(o.Built, v) {
			out = append(out, Problem{Path: o.Path, Message: v + " cannot be installed yet", Advice: cmp.Or(o.how, o.advice())})
		}
	}
	return out
}

// advice names the values that can be installed.
func (o Choice) advice() string {
	return "only " + sentence(o.Built) + " can be installed"
}

// notYetBuilt says plainly which written fields nothing acts on, each once, and
// which values a cluster of these hosts cannot have yet, written or not.
func (d *config) notYetBuilt(c *Cluster) {
	if len(c.Spec.Hosts) > 0 {
		for _, o := range Choices() {
			if v := o.value(c); v != "" && !slices.Contains(o.Built, v) {
				d.Warn(o.Path, o.advice(), "accepted, not yet built: installing with %s", v)
			}
		}
	}
	first := d.FirstWritten()
	for _, w := range NotYetBuilt() {
		if path := first[w.Path]; path != "" {
			d.Add(Warning, d.Node(path), path, "accepted, not yet built: "+w.For, "")
		}
	}
}

// sentence lists words as a sentence does.
func sentence(all []string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " and " + all[last]
}

// words are those of a tag of a field of T: its enum's, or those that are built.
func words[T any](field, tag string) []string {
	f, _ := reflect.TypeFor[T]().FieldByName(field)
	return strings.Split(f.Tag.Get(tag), "|")
}
