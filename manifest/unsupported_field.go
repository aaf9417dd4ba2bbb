package manifest

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// UnsupportedField is a field that is read and validated, with everything below it, but is not
// yet supported: it has no effect.
type UnsupportedField struct {
	Path    string // "spec.system"
	Feature string // the feature that the field requires
	// Choice is the Choice that refuses the field, if the field holds settings of a value that
	// cannot be installed; "" if the field itself is refused.
	Choice string
	// requested reports whether a config uses the field; nil if Choice is set.
	requested func(*Spec) bool
}

// UnsupportedFields lists the fields that are not yet supported. Remove the line of a field when
// you implement it. A test compares this list and Used with the fields that exist.
func UnsupportedFields() []UnsupportedField {
	const (
		services = "Kubernetes as services of the host"
		backup   = "etcd backups"
		runtime  = "spec.runtime.type"
	)
	return []UnsupportedField{
		{"spec.kubernetes.kubeProxy.extraArgs", services + " (kube-proxy of kubeadm has no flags)", "", func(s *Spec) bool { return len(s.Kubernetes.KubeProxy.ExtraArgs) > 0 }},
		{"spec.kubernetes.autoRenewCerts", "automatic certificate renewal", "", func(s *Spec) bool { return s.Kubernetes.AutoRenewCerts }},
		{"spec.kubernetes.kata", "Kata Containers", "", func(s *Spec) bool { return s.Kubernetes.Kata.Enabled }},
		{"spec.runtime.docker", "docker as the runtime", runtime, nil}, {"spec.runtime.cri-o", "CRI-O as the runtime", runtime, nil},
		{"spec.runtime.isulad", "iSulad as the runtime", runtime, nil},
		{"spec.etcd.backupDir", backup, "", func(s *Spec) bool { return s.Etcd.BackupDir != "" }},
		{"spec.etcd.backupPeriodHours", backup, "", func(s *Spec) bool { return s.Etcd.BackupPeriodHours != 0 }},
		{"spec.etcd.keepBackupNumber", backup, "", func(s *Spec) bool { return s.Etcd.KeepBackupNumber != 0 }},
		{"spec.registry.harborConfig", "Harbor", "spec.registry.type", nil},
		{"spec.monitoring", "monitoring", "", func(s *Spec) bool { return s.Monitoring.Enabled }},
	}
}

// SupportedFields lists the fields that have an effect: on the bundle, on the installation, or on both.
// A field below one of UnsupportedFields affects only the contents of the bundle.
func SupportedFields() []string {
	used := []string{
		"apiVersion", "kind", "metadata.name",
		"spec.roleGroups.etcd", "spec.roleGroups.master", "spec.roleGroups.worker", "spec.roleGroups.registry",
		"spec.controlPlaneEndpoint.domain", "spec.controlPlaneEndpoint.address", "spec.controlPlaneEndpoint.port", "spec.controlPlaneEndpoint.externalDNS",
		"spec.roleGroups.loadbalancer", "spec.loadBalancer.external.keepalived.vrid", "spec.loadBalancer.external.keepalived.interface",
		"spec.loadBalancer.mode", "spec.loadBalancer.external.type", "spec.loadBalancer.internal.type", "spec.loadBalancer.internal.kubeVip.interface",
		"spec.kubernetes.type", "spec.kubernetes.version", "spec.kubernetes.clusterName",
		"spec.kubernetes.apiServer.extraArgs", "spec.kubernetes.apiServer.certSANs", "spec.kubernetes.apiServer.serviceNodePortRange",
		"spec.kubernetes.controllerManager.extraArgs", "spec.kubernetes.scheduler.extraArgs",
		"spec.kubernetes.kubelet.extraArgs", "spec.kubernetes.kubelet.cgroupDriver",
		"spec.kubernetes.kubeProxy.mode", "spec.kubernetes.kubeProxy.masqueradeAll", "spec.kubernetes.kubeProxy.ipvs.excludeCIDRs",
		"spec.kubernetes.maxPods", "spec.kubernetes.podPidsLimit", "spec.kubernetes.nodeCidrMaskSize", "spec.kubernetes.nodeCidrMaskSizeIPv6",
		"spec.kubernetes.hardening.relax", "spec.kubernetes.hardening.podSecurity", "spec.kubernetes.hardening.privilegedNamespaces",
		"spec.kubernetes.featureGates", "spec.kubernetes.nodeFeatureDiscovery.enabled", "spec.runtime.type", "spec.runtime.version",
		"spec.runtime.containerd.registryMirrors", "spec.runtime.containerd.insecureRegistries", "spec.runtime.containerd.dataDir",
		"spec.etcd.type", "spec.etcd.version", "spec.etcd.dataDir", "spec.etcd.extraArgs", "spec.etcd.heartbeatInterval", "spec.etcd.electionTimeout",
		"spec.etcd.snapshotCount", "spec.etcd.autoCompactionRetention", "spec.etcd.metrics", "spec.etcd.quotaBackendBytes", "spec.etcd.maxRequestBytes",
		"spec.etcd.maxSnapshots", "spec.etcd.maxWals", "spec.etcd.logLevel", "spec.etcd.preserveData",
		"spec.etcd.external.endpoints", "spec.etcd.external.caFile", "spec.etcd.external.certFile", "spec.etcd.external.keyFile",
		"spec.network.plugin", "spec.network.version", "spec.network.kubePodsCIDR", "spec.network.kubeServiceCIDR", "spec.network.flannel.backend",
		"spec.network.ippool.blockSize", "spec.network.calico.ipipMode", "spec.network.calico.vxlanMode", "spec.network.calico.vethMTU",
		"spec.network.values", "spec.network.multus.enabled", "spec.storage.openebs.basePath", "spec.storage.nfs.server", "spec.storage.nfs.path",
		"spec.registry.type", "spec.registry.version", "spec.registry.privateRegistry", "spec.registry.namespaceOverride", "spec.registry.registryDataDir",
		"spec.registry.auths.username", "spec.registry.auths.password", "spec.registry.auths.pullUsername", "spec.registry.auths.pullPassword",
		"spec.registry.auths.skipTLSVerify", "spec.registry.auths.plainHTTP", "spec.registry.auths.certsPath",
		"spec.addons.name", "spec.addons.type", "spec.addons.source", "spec.addons.version", "spec.addons.namespace", "spec.addons.values",
		"spec.dns.dnsEtcHosts", "spec.dns.coredns.additionalConfigs", "spec.dns.coredns.rewriteBlock", "spec.dns.coredns.upstreamDNSServers",
		"spec.dns.coredns.externalZones.zones", "spec.dns.coredns.externalZones.nameservers", "spec.dns.coredns.externalZones.cache",
		"spec.dns.coredns.externalZones.rewrite", "spec.dns.nodelocaldns.enabled",
		"spec.dns.nodelocaldns.externalZones.zones", "spec.dns.nodelocaldns.externalZones.nameservers", "spec.dns.nodelocaldns.externalZones.cache",
		"spec.dns.nodelocaldns.externalZones.rewrite",
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

// Choice is a field with values that are accepted but not yet supported by install. They
// affect only the contents of the bundle.
type Choice struct {
	Path      string   // "spec.network.plugin"
	Supported []string // values that can be installed
	value     func(*Cluster) string
	how       string // advice in place of the list of values that can be installed; may be empty
}

// Choices lists the fields with values that cannot be installed yet. The struct tag built
// lists the values that can be installed. A field that is not set needs none of them.
func Choices() []Choice {
	return []Choice{
		{"spec.loadBalancer.external.type", words[ExternalLoadBalancer]("Type", "built"), func(c *Cluster) string { return c.Spec.LoadBalancer.External.Type }, ""},
		{"spec.loadBalancer.internal.type", words[InternalLoadBalancer]("Type", "built"), func(c *Cluster) string { return c.Spec.LoadBalancer.Internal.Type }, ""},
		{"spec.kubernetes.type", words[Kubernetes]("Type", "built"), func(c *Cluster) string { return c.Spec.Kubernetes.Type }, ""},
		{"spec.runtime.type", words[Runtime]("Type", "built"), func(c *Cluster) string { return c.Spec.Runtime.Type }, ""},
		{"spec.network.plugin", words[Network]("Plugin", "built"), func(c *Cluster) string { return c.Spec.Network.Plugin }, ""},
		{"spec.registry.type", words[Registry]("Type", "built"), func(c *Cluster) string { return cmp.Or(c.Spec.Registry.Type, "none") },
			"add a host to spec.roleGroups.registry, or use an existing registry: type: external and privateRegistry"},
	}
}

// NotInstallable lists the settings of c, by field, that this version of kubexm cannot
// install; nil if c can be installed. A bundle can be built from c in either case. A config
// without hosts is for a bundle only, and its other fields are not checked.
func (c *Cluster) NotInstallable() Problems {
	if len(c.Spec.Hosts) == 0 {
		return Problems{{Path: "spec.hosts", Message: "has no host", Advice: "list the machines of the cluster"}}
	}
	out := c.NotSupported()
	for _, w := range UnsupportedFields() {
		if w.requested != nil && w.requested(&c.Spec) {
			out = append(out, Problem{Path: w.Path, Message: "cannot be installed yet: kubexm does not support " + w.Feature, Advice: "leave it out"})
		}
	}
	return append(out, c.notCarried()...)
}

// NotSupported lists the choices of c for which kubexm has no plan, neither to install such a
// cluster nor to delete it.
func (c *Cluster) NotSupported() Problems {
	var out Problems
	for _, o := range Choices() {
		if v := o.value(c); v != "" && !slices.Contains(o.Supported, v) {
			out = append(out, Problem{Path: o.Path, Message: v + " cannot be installed yet", Advice: cmp.Or(o.how, o.advice())})
		}
	}
	return out
}

// advice lists the values that can be installed.
func (o Choice) advice() string {
	return "only " + sentence(o.Supported) + " can be installed"
}

// notYetBuilt warns, once per field, of fields in the document that have no effect yet. If
// there are hosts, it also warns of values that cannot be installed yet, including defaults.
func (d *config) notYetBuilt(c *Cluster) {
	if len(c.Spec.Hosts) > 0 {
		for _, o := range Choices() {
			if v := o.value(c); v != "" && !slices.Contains(o.Supported, v) {
				d.Warn(o.Path, o.advice(), "accepted, not yet built: installing with %s", v)
			}
		}
	}
	first := d.FirstWritten()
	for _, w := range UnsupportedFields() {
		if path := first[w.Path]; path != "" {
			d.Add(Warning, d.Node(path), path, "accepted, not yet built: "+w.Feature, "")
		}
	}
}

// sentence joins words with commas and "and".
func sentence(all []string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " and " + all[last]
}

// words returns the values in a tag of a field of T, which is enum or built.
func words[T any](field, tag string) []string {
	f, _ := reflect.TypeFor[T]().FieldByName(field)
	return strings.Split(f.Tag.Get(tag), "|")
}
