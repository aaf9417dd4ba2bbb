package pipeline_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/kubeadm"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// whole is a config that writes every field which installing a cluster acts on.
const whole = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: m1, address: 192.0.2.11, internalAddress: 10.0.0.11, arch: amd64, labels: {disk: ssd}, taints: [{key: only, value: builds, effect: NoSchedule}]}
    - {name: w1, address: 192.0.2.21, internalAddress: 10.0.0.21}
    - {name: w2, address: 192.0.2.22, internalAddress: 10.0.0.22}
    - {name: r1, address: 192.0.2.31, internalAddress: 10.0.0.31}
    - {name: r2, address: 192.0.2.32, internalAddress: 10.0.0.32}
  ssh: {user: root, password: secret}
  roleGroups: {master: [m1], worker: [w1, w2], registry: [r1]}
  controlPlaneEndpoint: {domain: api.site.local, address: 192.0.2.11, port: 6443, externalDNS: false}
  kubernetes:
    version: v1.32.2
    clusterName: cluster.local
    apiServer: {serviceNodePortRange: 30000-32767, certSANs: [a.example.com], extraArgs: {audit-log-maxage: 30}}
    controllerManager: {extraArgs: {terminated-pod-gc-threshold: 500}}
    scheduler: {extraArgs: {v: 2}}
    kubelet: {cgroupDriver: systemd, extraArgs: {image-gc-high-threshold: 80}}
    kubeProxy: {mode: ipvs, masqueradeAll: false, ipvs: {excludeCIDRs: [10.9.0.0/16]}}
    maxPods: 110
    podPidsLimit: 10000
    nodeCidrMaskSize: 24
    nodeCidrMaskSizeIPv6: 112
    featureGates: {GracefulNodeShutdown: true}
    hardening: {relax: [profiling], podSecurity: baseline, privilegedNamespaces: [probes]}
  runtime:
    containerd: {registryMirrors: [mirror.site.local], insecureRegistries: [old.site.local], dataDir: /var/lib/containerd}
  etcd:
    {type: kubeadm, version: v3.5.16, dataDir: /var/lib/etcd, extraArgs: {pre-vote: true}, heartbeatInterval: 250, electionTimeout: 5000, snapshotCount: 10000,
     autoCompactionRetention: 8, metrics: basic, quotaBackendBytes: 2147483648, maxRequestBytes: 1572864, maxSnapshots: 5, maxWals: 6, logLevel: info}
  network: {plugin: flannel, kubePodsCIDR: 10.233.64.0/18, kubeServiceCIDR: 10.233.0.0/18, flannel: {backend: vxlan}}
  registry:
    {type: registry, privateRegistry: images.site.local, namespaceOverride: one, registryDataDir: /mnt/registry,
     auths: {hub.site.local: {username: anna, password: first, skipTLSVerify: false, plainHTTP: false, certsPath: testdata/one}}}
  dns:
    dnsEtcHosts: 192.0.2.50 git.site.local
    coredns:
      additionalConfigs: log
      rewriteBlock: rewrite name a.site.local b.site.local
      upstreamDNSServers: [192.0.2.53]
      externalZones: [{zones: [site.local], nameservers: [192.0.2.54], cache: 33, rewrite: [name c.site.local d.site.local]}]
  storage: {openebs: {basePath: /data/first}, nfs: {server: 192.0.2.98, path: /srv/first}}
  extra: {hosts: [{domain: wiki.site.local, address: 192.0.2.60}], resolves: [192.0.2.65]}
  system: {ntpServers: [192.0.2.67], timezone: Etc/UTC, keep: [swap]}
  addons: [{name: tools, type: helm, source: 'https://charts.example', version: 1.2.3, namespace: shop, values: {colour: red}}]
`

const dual = "kubePodsCIDR: '10.233.64.0/18,fd00:10::/96', kubeServiceCIDR: '10.233.0.0/18,fd00:20::/112'"

// external is a store that stands already; what its files hold is not looked at here.
const external = "type: external, external: {endpoints: ['https://192.0.2.71:2379'], caFile: testdata/one/ca, certFile: testdata/one/cert, keyFile: testdata/one/key}"

// withCalico has calico connect the pods.
var withCalico = []string{"plugin: flannel", "plugin: calico", "flannel: {backend: vxlan}", "ippool: {blockSize: 26}, calico: {ipipMode: Never, vxlanMode: Never, vethMTU: 0}"}

// withCache has a DNS cache on each node.
var withCache = []string{"  storage:", "    nodelocaldns: {enabled: true, externalZones: [{zones: [cached.local], nameservers: [192.0.2.57], cache: 35, rewrite: [name e.cached.local f.cached.local]}]}\n  storage:"}

// outside has the images come from a registry that exists already.
var outside = []string{
	", registry: [r1]", "", "type: registry, privateRegistry", "type: external, privateRegistry",
	"auths: {hub", "auths: {images.site.local: {username: robot, password: second, pullUsername: reader, pullPassword: third}, hub",
}

// changes give each field another value. The first word pair is the change; what
// follows is put in before, where a field counts in some clusters alone.
var changes = map[string][]string{
	"metadata.name": {"name: demo", "name: other"},

	"spec.hosts.name": {"m1", "m9"}, "spec.hosts.address": {"192.0.2.11", "192.0.2.99"}, "spec.hosts.internalAddress": {"10.0.0.21", "10.0.0.99"},
	"spec.hosts.arch": {"10.0.0.31}", "10.0.0.31, arch: arm64}"}, "spec.hosts.labels": {"disk: ssd", "disk: hdd"},
	"spec.hosts.taints.key": {"key: only", "key: just"}, "spec.hosts.taints.value": {"builds", "tests"}, "spec.hosts.taints.effect": {"NoSchedule", "NoExecute"},
	"spec.roleGroups.master": {"master: [m1]", "master: [w2]", "address: 192.0.2.11, port", "port", "worker: [w1, w2]", "worker: [w1]"}, "spec.roleGroups.worker": {"worker: [w1, w2]", "worker: [w1]"},
	"spec.roleGroups.registry": {"registry: [r1]", "registry: [r2]"},

	"spec.controlPlaneEndpoint.domain": {"api.site.local", "k8s.site.local"}, "spec.controlPlaneEndpoint.address": {"address: 192.0.2.11, port", "address: 10.0.0.11, port"},
	"spec.controlPlaneEndpoint.port": {"port: 6443", "port: 7443"}, "spec.controlPlaneEndpoint.externalDNS": {"externalDNS: false", "externalDNS: true", "address: 192.0.2.11, port", "port"},

	"spec.kubernetes.version": {"v1.32.2", "v1.32.3"}, "spec.kubernetes.clusterName": {"cluster.local", "other.local"},
	"spec.kubernetes.apiServer.extraArgs": {"maxage: 30", "maxage: 31"}, "spec.kubernetes.apiServer.certSANs": {"a.example.com", "b.example.com"},
	"spec.kubernetes.apiServer.serviceNodePortRange": {"30000-32767", "30000-32000"}, "spec.kubernetes.controllerManager.extraArgs": {"threshold: 500", "threshold: 501"},
	"spec.kubernetes.scheduler.extraArgs": {"v: 2", "v: 3"}, "spec.kubernetes.kubelet.extraArgs": {"threshold: 80", "threshold: 81"},
	"spec.kubernetes.kubelet.cgroupDriver": {"cgroupDriver: systemd", "cgroupDriver: cgroupfs"}, "spec.kubernetes.kubeProxy.mode": {"mode: ipvs", "mode: iptables"},
	"spec.kubernetes.kubeProxy.masqueradeAll": {"masqueradeAll: false", "masqueradeAll: true", "mode: ipvs", "mode: nftables"}, "spec.kubernetes.kubeProxy.ipvs.excludeCIDRs": {"10.9.0.0/16", "10.8.0.0/16"},
	"spec.kubernetes.maxPods": {"maxPods: 110", "maxPods: 111"}, "spec.kubernetes.podPidsLimit": {"podPidsLimit: 10000", "podPidsLimit: 10001"},
	"spec.kubernetes.nodeCidrMaskSize": {"MaskSize: 24", "MaskSize: 23"}, "spec.kubernetes.featureGates": {"GracefulNodeShutdown: true", "GracefulNodeShutdown: false"},
	"spec.kubernetes.hardening.relax": {"relax: [profiling]", "relax: [tls]"}, "spec.kubernetes.hardening.podSecurity": {"podSecurity: baseline", "podSecurity: restricted"},
	"spec.kubernetes.hardening.privilegedNamespaces": {"probes", "sondes"},
	"spec.kubernetes.nodeCidrMaskSizeIPv6": {
		"MaskSizeIPv6: 112", "MaskSizeIPv6: 108", "kubePodsCIDR: 10.233.64.0/18, kubeServiceCIDR: 10.233.0.0/18", dual,
		"10.0.0.11,", "'10.0.0.11,fd00::11',", "10.0.0.21}", "'10.0.0.21,fd00::21'}", "10.0.0.22}", "'10.0.0.22,fd00::22'}", "10.0.0.31}", "'10.0.0.31,fd00::31'}", "10.0.0.32}", "'10.0.0.32,fd00::32'}",
	},
	"spec.runtime.containerd.registryMirrors": {"mirror.site", "hub.site"}, "spec.runtime.containerd.insecureRegistries": {"old.site", "older.site"},
	"spec.runtime.containerd.dataDir": {"dataDir: /var/lib/containerd", "dataDir: /data/containerd"},

	"spec.etcd.type": {"{type: kubeadm,", "{type: kubexm,"}, "spec.roleGroups.etcd": {"etcd: [m1]", "etcd: [w1]", "{master:", "{etcd: [m1], master:", "{type: kubeadm,", "{type: kubexm,"},
	"spec.etcd.external.endpoints": {"192.0.2.71", "192.0.2.72", "type: kubeadm, version: v3.5.16", external}, "spec.etcd.external.caFile": {"one/ca", "two/ca", "type: kubeadm, version: v3.5.16", external},
	"spec.etcd.external.certFile": {"one/cert", "two/cert", "type: kubeadm, version: v3.5.16", external}, "spec.etcd.external.keyFile": {"one/key", "two/key", "type: kubeadm, version: v3.5.16", external},
	"spec.etcd.version": {"version: v3.5.16, ", ""}, "spec.etcd.dataDir": {"dataDir: /var/lib/etcd", "dataDir: /data/etcd"}, "spec.etcd.extraArgs": {"pre-vote: true", "pre-vote: false"},
	"spec.etcd.heartbeatInterval": {"heartbeatInterval: 250", "heartbeatInterval: 251"}, "spec.etcd.electionTimeout": {"electionTimeout: 5000", "electionTimeout: 5001"},
	"spec.etcd.snapshotCount": {"snapshotCount: 10000", "snapshotCount: 10001"}, "spec.etcd.autoCompactionRetention": {"Retention: 8", "Retention: 0"},
	"spec.etcd.metrics": {"basic", "extensive"}, "spec.etcd.quotaBackendBytes": {"2147483648", "4294967296"}, "spec.etcd.maxRequestBytes": {"1572864", "1572865"},
	"spec.etcd.maxSnapshots": {"maxSnapshots: 5", "maxSnapshots: 0"}, "spec.etcd.maxWals": {"maxWals: 6", "maxWals: 0"}, "spec.etcd.logLevel": {"logLevel: info", "logLevel: warn"},

	"spec.network.plugin": {"plugin: flannel", "plugin: none", ", flannel: {backend: vxlan}", ""}, "spec.network.kubePodsCIDR": {"10.233.64.0/18", "10.234.64.0/18"}, "spec.network.kubeServiceCIDR": {"10.233.0.0/18", "10.235.0.0/18"},
	"spec.network.flannel.backend":                 {"backend: vxlan", "backend: host-gw"},
	"spec.network.ippool.blockSize":                append([]string{"blockSize: 26", "blockSize: 27"}, withCalico...),
	"spec.network.calico.ipipMode":                 append([]string{"ipipMode: Never", "ipipMode: Always"}, withCalico...),
	"spec.network.calico.vxlanMode":                append([]string{"vxlanMode: Never", "vxlanMode: Always"}, withCalico...),
	"spec.network.calico.vethMTU":                  append([]string{"vethMTU: 0", "vethMTU: 1400"}, withCalico...),
	"spec.network.values":                          {"mtu: 1400", "mtu: 1450", "plugin: flannel", "plugin: cilium", "flannel: {backend: vxlan}", "values: {mtu: 1400}"},
	"spec.network.multus.enabled":                  {"multus: {enabled: false}", "multus: {enabled: true}", "flannel: {backend: vxlan}", "flannel: {backend: vxlan}, multus: {enabled: false}"},
	"spec.kubernetes.nodeFeatureDiscovery.enabled": {"featureGates: {GracefulNodeShutdown: true}", "featureGates: {GracefulNodeShutdown: true}\n    nodeFeatureDiscovery: {enabled: true}"},
	"spec.storage.openebs.basePath":                {"/data/first", "/data/second"},
	"spec.storage.nfs.server":                      {"192.0.2.98", "192.0.2.97"},
	"spec.storage.nfs.path":                        {"/srv/first", "/srv/second"},
	"spec.registry.privateRegistry":                {"images.site.local", "images.site.local:5000"},
	"spec.registry.namespaceOverride":              {"Override: one", "Override: two"}, "spec.registry.registryDataDir": {"/mnt/registry", "/data/registry"},

	"spec.registry.auths.username": {"username: anna", "username: otto"}, "spec.registry.auths.password": {"password: first", "password: second"},
	"spec.registry.auths.pullUsername":  append([]string{"pullUsername: reader", "pullUsername: other"}, outside...),
	"spec.registry.auths.pullPassword":  append([]string{"pullPassword: third", "pullPassword: fourth"}, outside...),
	"spec.registry.auths.skipTLSVerify": {"skipTLSVerify: false", "skipTLSVerify: true"}, "spec.registry.auths.certsPath": {"certsPath: testdata/one", "certsPath: testdata/two"},
	"spec.registry.auths.plainHTTP": {"plainHTTP: false", "plainHTTP: true", ", certsPath: testdata/one", ""},

	"spec.dns.dnsEtcHosts": {"git.site", "svn.site"}, "spec.dns.coredns.additionalConfigs": {"additionalConfigs: log", "additionalConfigs: any"}, "spec.dns.coredns.rewriteBlock": {"b.site", "x.site"},
	"spec.dns.coredns.upstreamDNSServers": {"192.0.2.53", "192.0.2.55"}, "spec.dns.coredns.externalZones.zones": {"zones: [site.local]", "zones: [sites.local]"},
	"spec.dns.coredns.externalZones.nameservers": {"192.0.2.54", "192.0.2.56"}, "spec.dns.coredns.externalZones.cache": {"cache: 33", "cache: 34"}, "spec.dns.coredns.externalZones.rewrite": {"d.site", "x.site"},
	"spec.dns.nodelocaldns.enabled":                   append([]string{"enabled: true, ext", "enabled: false, ext"}, withCache...),
	"spec.dns.nodelocaldns.externalZones.zones":       append([]string{"zones: [cached.local]", "zones: [cache.local]"}, withCache...),
	"spec.dns.nodelocaldns.externalZones.nameservers": append([]string{"192.0.2.57", "192.0.2.58"}, withCache...),
	"spec.dns.nodelocaldns.externalZones.cache":       append([]string{"cache: 35", "cache: 36"}, withCache...),
	"spec.dns.nodelocaldns.externalZones.rewrite":     append([]string{"f.cached", "g.cached"}, withCache...),

	"spec.addons.name": {"name: tools", "name: tool"}, "spec.addons.type": {"type: helm", "type: yaml", "charts.example", "charts.example/a.yaml", ", values: {colour: red}", ""},
	"spec.addons.namespace": {"namespace: shop", "namespace: mall"}, "spec.addons.values": {"colour: red", "colour: blue"},
	"spec.extra.resolves.address": {"192.0.2.65", "192.0.2.66"}, "spec.system.keep": {"keep: [swap]", "keep: [firewall]"},
	"spec.system.ntpServers": {"192.0.2.67", "192.0.2.68"}, "spec.system.timezone": {"timezone: Etc/UTC", "timezone: Asia/Shanghai"},
	"spec.extra.hosts.domain": {"wiki.site", "chat.site"}, "spec.extra.hosts.address": {"192.0.2.60", "192.0.2.61"},
}

// elsewhere are the fields, with what is under them, whose effect others show.
var elsewhere = map[string]string{
	"apiVersion": "the decoder", "kind": "the decoder",
	"spec.ssh":                     "the connector, which reaches hosts",
	"spec.etcd.preserveData":       "the deletion",
	"spec.bundle":                  "the bundle",
	"spec.sources":                 "the bundle",
	"spec.system.rpms":             "the bundle",
	"spec.system.debs":             "the bundle",
	"spec.addons.source":           "the bundle",
	"spec.addons.version":          "the bundle",
	"spec.network.version":         "the bundle",
	"spec.runtime.version":         "the bundle",
	"spec.registry.version":        "the bundle",
	"spec.loadBalancer":            "the plans of testdata/clusters and steps/loadbalancer",
	"spec.roleGroups.loadbalancer": "the plans of testdata/clusters",
	"spec.kubernetes.type":         "the bundle; installing refuses others",
	"spec.runtime.type":            "the bundle; installing refuses others",
	"spec.registry.type":           "the plans of testdata/clusters; installing refuses harbor",
	"spec.hosts.sudoPassword":      "the connector",
	"spec.hosts.jumpHost":          "the connector",
}

func isElsewhere(field string) bool {
	if rest, ok := strings.CutPrefix(field, "spec.hosts."); ok && slices.Contains(manifest.SupportedFields(), "spec.ssh."+rest) {
		return true
	}
	for at := range elsewhere {
		if field == at || strings.HasPrefix(field, at+".") {
			return true
		}
	}
	return false
}

// TestEveryFieldTakesEffect: of each field that something acts on, another value
// makes another cluster.
func TestEveryFieldTakesEffect(t *testing.T) {
	work := t.TempDir()
	// The first step takes long, for it hashes passwords: most fields do not need it.
	plays := [][]string{played, played[1:]}
	var base [2]string
	for i, play := range plays {
		base[i] = made(t, whole, work, play)
	}
	if made(t, whole, copied(t, work), played) != base[0] {
		t.Fatal("the same config makes two clusters: nothing below would say anything")
	}
	for _, field := range manifest.SupportedFields() {
		c, ok := changes[field]
		if ok == isElsewhere(field) {
			t.Errorf("%s: its effect is shown here: %t, and elsewhere: %t", field, ok, !ok)
		}
		if !ok {
			continue
		}
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			before := whole
			for i := 2; i < len(c); i += 2 {
				before = replaced(t, before, c[i], c[i+1])
			}
			after := replaced(t, before, c[0], c[1])
			for i, play := range slices.Backward(plays) {
				first := base[i]
				if before != whole {
					first = made(t, before, copied(t, work), play)
				}
				if made(t, after, copied(t, work), play) != first {
					return
				}
			}
			t.Errorf("%q in place of %q changes nothing", c[1], c[0])
		})
	}
	for field := range changes {
		if !slices.Contains(manifest.SupportedFields(), field) {
			t.Errorf("%s: is changed here, and nothing is said to act on it", field)
		}
	}
}

func replaced(t *testing.T, text, old, with string) string {
	t.Helper()
	if !strings.Contains(text, old) {
		t.Fatalf("there is no %q", old)
	}
	return strings.ReplaceAll(text, old, with)
}

// copied gives a cluster's folder of its own, with the same keys and passwords.
func copied(t *testing.T, work string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(work)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// played are the steps of a creation that are carried out on simulated hosts.
// What kubeadm is given is asked for; the others take nothing else of a config.
var played = []string{
	"registryd.install", "node.update-etc-hosts", "node.configure-kernel", "containerd.start",
	"node.configure-chrony", "node.set-timezone", "node.update-resolv-conf",
	"etcd.give-client-keys", "kubeadm.harden",
	"kubernetes.label-nodes", "kubernetes.configure-coredns", "kubernetes.install-dns-cache", "network.install-flannel", "network.install-calico", "network.install-cilium", "network.install-multus",
	"node.make-volume-folder", "addon.install-openebs", "addon.install-nfs-provisioner", "addon.install-node-feature-discovery", "addon.install-tools-in-shop", "addon.install-tools-in-mall",
}

const flannel = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: kube-flannel-cfg}\ndata:\n  net-conf.json: '{}'\n"

// made tells all that a creation does with a config, with its keys and passwords
// in the folder work, as far as these steps go.
func made(t *testing.T, config, work string, play []string) string {
	t.Helper()
	c := steptest.Cluster(t, config)
	g, err := plan.Build(pipeline.Create(), plan.Scope{Want: c, Set: c.Spec.Kubernetes.Version})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "steps", "network", "testdata", "calico.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	calico := string(text)
	var out strings.Builder
	out.WriteString(g.String())
	sims := map[string]*conntest.Sim{}
	for _, h := range c.Spec.Hosts {
		s := conntest.New(t)
		steptest.Nft(s)
		s.AddFile("/usr/sbin/chronyd", "", 0o755)
		s.AddDir("/etc/chrony", 0o755)
		s.AddUnit("chrony.service", "[Install]\nWantedBy=multi-user.target\n", false, false)
		for _, zone := range []string{"Etc/UTC", "Asia/Shanghai"} {
			s.AddFile("/usr/share/zoneinfo/"+zone, "TZif", 0o644)
		}
		s.HandleProgram("kubectl", func(cmd connector.Cmd, stdin []byte) (connector.Result, bool) {
			if slices.ContainsFunc(cmd.Argv, func(a string) bool { return strings.HasPrefix(a, "secret/kubexm-objects.") }) { // nothing was recorded yet
				return connector.Result{Exit: 1, Stderr: []byte("Error from server (NotFound): secrets not found\n")}, true
			}
			fmt.Fprintf(&out, "%q %s\n", cmd.Argv, stdin)
			return connector.Result{}, true
		})
		s.HandleProgram("env", func(cmd connector.Cmd, stdin []byte) (connector.Result, bool) { // helm
			if slices.Contains(cmd.Argv, "status") {
				return connector.Result{Exit: 1, Stderr: []byte("Error: release: not found\n")}, true
			}
			fmt.Fprintf(&out, "%q %s\n", cmd.Argv, stdin)
			return connector.Result{}, true
		})
		sims[h.Name] = s
	}
	ran := map[string]bool{}
	for _, n := range g.Nodes {
		name := n.Step.Meta().Name
		on := n.Hosts
		if plan.IsLead(on[0]) {
			on = g.Leads[:1]
		}
		for _, h := range on {
			facade := func() *steps.Host {
				kase := steptest.Case{Cluster: c, Host: h, Workdir: work, Artifacts: steptest.Artifacts{Text: map[string]string{"flannel": flannel, "calico": calico, "tools": flannel}}}
				return kase.NewHost(t, sims[h.Name], n.Step)
			}
			var text []byte
			switch {
			case name == "kubeadm.init":
				text, err = kubeadm.InitConfig(c, facade())
			case name == "kubeadm.join-worker":
				text, err = kubeadm.JoinConfig(c, facade(), kubeadm.Token{})
			case slices.Contains(play, name):
				ran[name] = true
				err = n.Step.Run(t.Context(), facade())
			}
			if err != nil {
				t.Fatalf("%s on %s: %v", name, h.Name, err)
			}
			fmt.Fprintf(&out, "%s %s\n%s\n", name, h.Name, text)
		}
	}
	if len(ran) < len(play)-8 { // with one pod network or none, and without keys for a store, an add-on of that name, a DNS cache, multus or NFD
		t.Errorf("ran %v", ran)
	}
	for _, h := range c.Spec.Hosts {
		for _, l := range sims[h.Name].Snapshot() {
			if !strings.Contains(l, "/etc/kubexm/registry/htpasswd") && !strings.Contains(l, "/etc/kubexm/registry/push.htpasswd") { // salted
				out.WriteString(h.Name + " " + l + "\n")
			}
		}
	}
	return out.String()
}
