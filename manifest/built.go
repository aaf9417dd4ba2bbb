package manifest

import "go.yaml.in/yaml/v3"

// Waiting is a field, with everything under it, that is read and checked and
// that nothing acts on yet.
type Waiting struct {
	Path string // "spec.system"
	For  string // the work that will act on it
}

// NotYetBuilt lists what waits. Whoever builds a thing takes its line out. A
// test holds this list and Used against the fields that exist.
func NotYetBuilt() []Waiting {
	const (
		install  = "installing a cluster"
		ready    = "making hosts ready"
		balance  = "load balancers"
		registry = "the site's registry"
		backup   = "backups of etcd"
		packages = "packages of the operating system"
		charts   = "charts"
		day2     = "certificates that renew themselves"
	)
	return []Waiting{
		{"spec.hosts", install}, {"spec.ssh", install}, {"spec.roleGroups", install}, {"spec.controlPlaneEndpoint", install},
		{"spec.loadBalancer.external.keepalived", balance}, {"spec.loadBalancer.internal.kubeVip", balance},
		{"spec.system.ntpServers", ready}, {"spec.system.timezone", ready}, {"spec.system.rpms", packages}, {"spec.system.debs", packages},
		{"spec.kubernetes.clusterName", install}, {"spec.kubernetes.apiServer", install}, {"spec.kubernetes.controllerManager", install},
		{"spec.kubernetes.scheduler", install}, {"spec.kubernetes.kubelet", install}, {"spec.kubernetes.kubeProxy", install},
		{"spec.kubernetes.autoRenewCerts", day2}, {"spec.kubernetes.maxPods", install}, {"spec.kubernetes.podPidsLimit", install},
		{"spec.kubernetes.nodeCidrMaskSize", install}, {"spec.kubernetes.nodeCidrMaskSizeIPv6", install},
		{"spec.kubernetes.featureGates", install}, {"spec.kubernetes.kata", "Kata Containers"}, {"spec.kubernetes.nodeFeatureDiscovery", "node feature discovery"},
		{"spec.runtime.containerd", install}, {"spec.runtime.docker", "docker as the runtime"}, {"spec.runtime.cri-o", "CRI-O as the runtime"}, {"spec.runtime.isulad", "iSulad as the runtime"},
		{"spec.etcd.external", "an etcd that stands already"}, {"spec.etcd.dataDir", install}, {"spec.etcd.preserveData", "deleting a cluster"}, {"spec.etcd.extraArgs", install},
		{"spec.etcd.heartbeatInterval", install}, {"spec.etcd.electionTimeout", install}, {"spec.etcd.snapshotCount", install}, {"spec.etcd.autoCompactionRetention", install},
		{"spec.etcd.metrics", install}, {"spec.etcd.quotaBackendBytes", install}, {"spec.etcd.maxRequestBytes", install}, {"spec.etcd.maxSnapshots", install},
		{"spec.etcd.maxWals", install}, {"spec.etcd.logLevel", install}, {"spec.etcd.backupDir", backup}, {"spec.etcd.backupPeriodHours", backup}, {"spec.etcd.keepBackupNumber", backup},
		{"spec.network.kubePodsCIDR", install}, {"spec.network.kubeServiceCIDR", install}, {"spec.network.ippool", install}, {"spec.network.calico", install}, {"spec.network.flannel", install},
		{"spec.registry.privateRegistry", registry}, {"spec.registry.namespaceOverride", registry}, {"spec.registry.auths", registry},
		{"spec.registry.registryDataDir", registry}, {"spec.registry.harborConfig", registry},
		{"spec.addons.type", charts}, {"spec.addons.namespace", charts}, {"spec.addons.values", charts},
		{"spec.dns.dnsEtcHosts", install}, {"spec.dns.coredns", install}, {"spec.dns.nodelocaldns.externalZones", "node-local DNS"},
		{"spec.extra", ready}, {"spec.monitoring", "monitoring"}, {"spec.bundle.operatingSystems", packages},
	}
}

// Used lists the fields that something acts on today, each with who does. A
// host's architecture counts although hosts wait: it decides the platforms.
func Used() []string {
	return []string{
		"apiVersion", "kind", "metadata.name", "spec.hosts.arch",
		"spec.loadBalancer.mode", "spec.loadBalancer.external.type", "spec.loadBalancer.internal.type",
		"spec.kubernetes.type", "spec.kubernetes.version", "spec.runtime.type", "spec.runtime.version", "spec.etcd.type", "spec.etcd.version",
		"spec.network.plugin", "spec.network.version", "spec.network.multus.enabled", "spec.storage.openebs.basePath",
		"spec.registry.type", "spec.registry.version", "spec.addons.name", "spec.addons.source", "spec.addons.version", "spec.dns.nodelocaldns.enabled",
		"spec.bundle.platforms", "spec.bundle.kubernetesVersions", "spec.bundle.images.reference", "spec.bundle.images.digest",
		"spec.bundle.files.name", "spec.bundle.files.address", "spec.bundle.files.sha256", "spec.bundle.files.platform",
		"spec.sources.zone", "spec.sources.replace.from", "spec.sources.replace.to", "spec.sources.replace.plainHTTP", "spec.sources.replace.flatten",
		"spec.sources.caFile", "spec.sources.dockerConfig",
	}
}

// notYetBuilt says plainly which written fields nothing acts on, each once.
func (d *document) notYetBuilt() {
	first := d.firstWritten()
	for _, w := range NotYetBuilt() {
		if path := first[w.Path]; path != "" {
			d.add(Warning, d.places[path], path, "accepted, not yet built: "+w.For, "")
		}
	}
}

// firstWritten gives, for each field that the document holds, its first place,
// whatever list it lies in.
func (d *document) firstWritten() map[string]string {
	first := map[string]string{}
	for path := range d.written {
		field := plainPath(path)
		old, ok := first[field]
		if !ok || before(d.places[path], d.places[old]) || !before(d.places[old], d.places[path]) && path < old {
			first[field] = path
		}
	}
	return first
}

func before(a, b *yaml.Node) bool { return a.Line < b.Line || a.Line == b.Line && a.Column < b.Column }
