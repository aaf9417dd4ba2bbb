package manifest

import (
	"iter"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// header begins a small config; fields of spec follow it.
const header = "apiVersion: kubexm.mensylisir.io/v1alpha1\nkind: Cluster\nmetadata: {name: demo}\nspec:"

// mustDecode decodes header and spec, which has no errors.
func mustDecode(t *testing.T, spec string) *Cluster {
	t.Helper()
	c, problems := Decode(strings.NewReader(header + spec))
	if err := problems.Err(); err != nil {
		t.Fatalf("%v\n%s", err, spec)
	}
	return c
}

const oneHost = "\n  kubernetes: {version: v1.34.10}\n  roleGroups: {etcd: [node1], master: [node1], worker: [node1]}\n"

// TestDefaults: what counts where nothing is written, the parts that depend on
// others included.
func TestDefaults(t *testing.T) {
	c := mustDecode(t, "\n  kubernetes: {version: v1.34.10}\n")
	s := c.Spec
	got := []any{s.Kubernetes.Type, s.Kubernetes.KubeProxy.Mode, s.Runtime.Type, s.Etcd.Type, s.Etcd.SnapshotCount, s.Network.Plugin,
		s.Network.KubePodsCIDR[0], s.Network.Calico.IPIPMode, s.Registry.Type, s.Registry.PrivateRegistry, s.LoadBalancer.Mode,
		*s.DNS.NodeLocalDNS.Enabled, s.SSH.Port, s.SSH.HostKeyPolicy, s.SSH.ConnectionTimeout.String(), s.ControlPlaneEndpoint.Domain}
	want := []any{"kubeadm", "ipvs", "containerd", "kubexm", 10000, "calico", "10.233.64.0/18", "Always", "", "", "none", false, 22, "strict", "15s", "lb.kubexm.local"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	for spec, want := range map[string]string{
		"\n  kubernetes: {version: v1.35.7}\n":                              "nftables",
		"\n  kubernetes: {version: v1.35.7, kubeProxy: {mode: iptables}}\n": "iptables",
	} {
		if got := mustDecode(t, spec).Spec.Kubernetes.KubeProxy.Mode; got != want {
			t.Errorf("%s: mode %s, want %s", spec, got, want)
		}
	}
	c = mustDecode(t, "\n  kubernetes: {version: v1.34.10}\n  network: {calico: {vxlanMode: Always}}\n  dns: {nodelocaldns: {externalZones: [{zones: [a.example], nameservers: [192.0.2.1]}]}}\n  loadBalancer: {internal: {type: haproxy}}\n")
	if c.Spec.Network.Calico.IPIPMode != "Never" || !*c.Spec.DNS.NodeLocalDNS.Enabled || c.Spec.LoadBalancer.Mode != "internal" || c.Spec.DNS.NodeLocalDNS.ExternalZones[0].Cache != 30 {
		t.Errorf("derived: %+v %+v %s", c.Spec.Network.Calico, c.Spec.DNS.NodeLocalDNS, c.Spec.LoadBalancer.Mode)
	}
}

// TestNodeMaskOfIPv6: the default follows the pod range, leaves room for a node's pods,
// and is none that the controller refuses.
func TestNodeMaskOfIPv6(t *testing.T) {
	for _, c := range []struct {
		pods string
		more string
		want int
	}{
		{"10.1.0.0/16", "", 64}, {"10.1.0.0/16,fd00:1::/48", "", 64}, {"10.1.0.0/16,fd00:1::/56", "", 64}, {"10.1.0.0/16,fd00:1::/60", "", 68},
		{"10.1.0.0/16,fd00:1::/64", "", 72}, {"10.1.0.0/16,fd00:1::/112", "", 120}, {"10.1.0.0/16,fd00:1::/40", "", 56},
		{"10.1.0.0/16,fd00:1::/116", "", 121}, {"10.1.0.0/16,fd00:1::/112", ", nodeCidrMaskSize: 20, maxPods: 1000", 118},
		{"10.1.0.0/16,fd00:1::/112", ", nodeCidrMaskSizeIPv6: 116", 116},
	} {
		k := mustDecode(t, "\n  kubernetes: {version: v1.34.10"+c.more+"}\n  network: {kubePodsCIDR: '"+c.pods+"'"+
			map[bool]string{true: ", kubeServiceCIDR: '10.2.0.0/16,fd00:2::/112'", false: ", kubeServiceCIDR: 10.2.0.0/16"}[strings.Contains(c.pods, ":")]+"}\n").Spec.Kubernetes
		if k.NodeCIDRMaskSizeIPv6 != c.want {
			t.Errorf("%s%s: /%d, want /%d", c.pods, c.more, k.NodeCIDRMaskSizeIPv6, c.want)
		}
	}
}

// TestAddressInARange: kube-proxy reads an address with a prefix length as its range, and so
// does the config, with a warning.
func TestAddressInARange(t *testing.T) {
	c, problems := Decode(strings.NewReader(header + "\n  kubernetes: {version: v1.34.10, kubeProxy: {ipvs: {excludeCIDRs: [172.16.0.2/24, 10.0.0.0/8]}}}\n"))
	if problems.Err() != nil || len(problems) != 1 || !strings.Contains(problems[0].String(), "excludeCIDRs[0]: 172.16.0.2/24 is an address with a prefix length, and means the range 172.16.0.0/24") {
		t.Fatal(problems)
	}
	if got := strings.Join(c.Spec.Kubernetes.KubeProxy.IPVS.ExcludeCIDRs, " "); got != "172.16.0.0/24 10.0.0.0/8" {
		t.Error(got)
	}
}

// TestZeroIsWritten: zero and false count as written, an empty text does not.
func TestZeroIsWritten(t *testing.T) {
	c := mustDecode(t, "\n  kubernetes: {version: v1.34.10}\n  etcd: {maxSnapshots: 0, maxWals: 0, type: ''}\n  network: {kubePodsCIDR: '', calico: {vethMTU: 0}}\n  controlPlaneEndpoint: {domain: ''}\n")
	s := c.Spec
	if *s.Etcd.MaxSnapshots != 0 || *s.Etcd.MaxWALs != 0 || s.Etcd.Type != "kubexm" || s.Network.KubePodsCIDR[0] != "10.233.64.0/18" || s.ControlPlaneEndpoint.Domain != "lb.kubexm.local" {
		t.Errorf("%+v %+v %+v", s.Etcd, s.Network, s.ControlPlaneEndpoint)
	}
}

// TestHostsInherit: what spec.ssh says holds for hosts that do not say otherwise,
// and a way to log in of a host's own stands for itself.
func TestHostsInherit(t *testing.T) {
	c := mustDecode(t, oneHost+`
  ssh: {user: ops, port: 2222, privateKeyPath: ~/.ssh/id, passphrase: "${env:P}", jumpHost: jump.example, connectionTimeout: 1m}
  hosts:
    - {name: node1, address: 192.0.2.1}
    - {name: node2, address: 192.0.2.2, user: root, port: 22, password: "${env:Q}"}
    - {name: node3, address: a.example, internalAddress: 192.0.2.3, agent: true, jumpHost: {address: 192.0.2.9, user: j}}
`)
	h := c.Spec.Hosts
	if h[0].User != "ops" || h[0].Port != 2222 || h[0].PrivateKeyPath == "" || *h[0].Agent || h[0].JumpHost.Address != "jump.example" || h[0].ConnectionTimeout.String() != "1m0s" {
		t.Errorf("the first host: %+v", h[0])
	}
	if h[1].User != "root" || h[1].Port != 22 || h[1].PrivateKeyPath != "" || !h[1].Passphrase.IsZero() || h[1].Password.Reference() != "${env:Q}" || *h[1].Agent {
		t.Errorf("the second host: %+v", h[1])
	}
	if !*h[2].Agent || h[2].JumpHost.User != "j" || h[2].JumpHost.Port != 22 || !*h[2].JumpHost.Agent || h[2].PrivateKeyPath != "" || h[2].InternalAddress[0] != "192.0.2.3" {
		t.Errorf("the third host: %+v", h[2])
	}
	if h[0].InternalAddress[0] != "192.0.2.1" {
		t.Errorf("no internal address: %v", h[0].InternalAddress)
	}
	// One host's jump host is not another one's.
	if h[0].JumpHost == h[1].JumpHost {
		t.Error("hosts share one jump host")
	}
}

// TestHostsInheritEveryField: no field of spec.ssh is passed over.
func TestHostsInheritEveryField(t *testing.T) {
	c := mustDecode(t, oneHost+`
  ssh:
    {user: ops, port: 2222, password: "${env:A}", privateKeyPath: ~/.ssh/id, passphrase: "${env:P}", agent: true, hostKeyPolicy: pinned,
     hostKey: "SHA256:ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMNOPQ", connectionTimeout: 1m, sudoPassword: "${env:S}", jumpHost: {address: 192.0.2.9, agent: true}}
  hosts: [{name: node1, address: 192.0.2.1}]
`)
	if diff := cmp.Diff(c.Spec.SSH, c.Spec.Hosts[0].SSH, cmp.AllowUnexported(Secret{})); diff != "" {
		t.Errorf("the host has another way to log in (-spec.ssh +host):\n%s", diff)
	}
	for v := range structFields(reflect.ValueOf(c.Spec.SSH)) {
		if v.IsZero() {
			t.Errorf("a field of %s is not tried: write it above", v.Type())
		}
	}
}

// structFields gives the fields of a struct, those of embedded structs in place of these.
func structFields(v reflect.Value) iter.Seq[reflect.Value] {
	return func(yield func(reflect.Value) bool) {
		for i := range v.NumField() {
			if v.Type().Field(i).Anonymous {
				structFields(v.Field(i))(yield)
			} else if !yield(v.Field(i)) {
				return
			}
		}
	}
}

// TestOtherForms: short forms, single values for lists, flags in three ways, anchors.
func TestOtherForms(t *testing.T) {
	c := mustDecode(t, oneHost+`
  hosts:
    - {name: node1, address: 192.0.2.1, internalAddress: "192.0.2.1, 2001:db8::1", labels: &l {a: b}, taints: ["a=b:NoSchedule", {key: c, effect: NoExecute}]}
    - {name: node2, address: 192.0.2.2, labels: *l}
  etcd: {extraArgs: [--v=2, {name: log, value: x=y}]}
  system: {ntpServers: ntp.example, rpms: nfs-utils}
  extra: {resolves: 192.0.2.53}
  addons: metallb
  bundle: {platforms: linux/amd64, images: docker.io/library/nginx:1.29, operatingSystems: {name: debian, releases: 12}}
  runtime: {version: 1.10}
`)
	h := c.Spec.Hosts
	if diff := cmp.Diff([]string{"192.0.2.1", "2001:db8::1"}, h[0].InternalAddress); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Taint{{Key: "a", Value: "b", Effect: "NoSchedule"}, {Key: "c", Effect: "NoExecute"}}, h[0].Taints); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(h[0].Labels, h[1].Labels); diff != "" || h[1].Labels["a"] != "b" {
		t.Errorf("an anchor's value: %v", h[1].Labels)
	}
	if diff := cmp.Diff(Args{{"v", "2"}, {"log", "x=y"}}, c.Spec.Etcd.ExtraArgs); diff != "" {
		t.Error(diff)
	}
	s := c.Spec
	got := []string{s.System.NTPServers[0], s.System.RPMs[0], s.Extra.Resolves[0].Address, s.Addons[0].Name, s.Bundle.Platforms[0].String(),
		s.Bundle.Images[0].Reference, s.Bundle.OperatingSystems[0].Releases[0], s.Runtime.Version}
	if diff := cmp.Diff([]string{"ntp.example", "nfs-utils", "192.0.2.53", "metallb", "linux/amd64", "docker.io/library/nginx:1.29", "12", "1.10"}, got); diff != "" {
		t.Error(diff)
	}
	c = mustDecode(t, "\n  kubernetes: {version: v1.34.10, apiServer: {extraArgs: {v: 2, audit-log-path: /x}}}\n")
	if diff := cmp.Diff(Args{{"v", "2"}, {"audit-log-path", "/x"}}, c.Spec.Kubernetes.APIServer.ExtraArgs); diff != "" {
		t.Error(diff)
	}
}

// aliasValues are values to try each second spelling with.
var aliasValues = map[string]string{
	"spec.runtime": "{type: docker}", "spec.runtime.version": "1.7.6", "spec.runtime.type": "cri-o", "spec.runtime.containerd.dataDir": "/d", "spec.runtime.docker.dataDir": "/d",
	"spec.loadBalancer.external.type": "external", "spec.loadBalancer.internal.type": "haproxy", "spec.controlPlaneEndpoint.address": "192.0.2.9",
	"spec.loadBalancer.external.keepalived": "{vrid: 9}", "spec.loadBalancer.internal.kubeVip": "{interface: eth1}",
	"spec.kubernetes.apiServer": "{certSANs: [a.example]}", "spec.kubernetes.apiServer.certSANs": "[a.example]", "spec.kubernetes.kubelet.extraArgs": "[v=2]",
	"spec.kubernetes.kubeProxy.mode": "iptables", "spec.kubernetes.kubeProxy.masqueradeAll": "true", "spec.kubernetes.kubeProxy": "{masqueradeAll: true}",
	"spec.dns.nodelocaldns": "{enabled: true}", "spec.etcd.external": "{endpoints: ['http://192.0.2.8:2379']}", "spec.etcd.extraArgs": "[v=2]",
	"spec.roleGroups.etcd": "[node1]", "spec.network.kubePodsCIDR": "10.1.0.0/16", "spec.network.kubeServiceCIDR": "10.2.0.0/16",
	"spec.extra.resolves": "[192.0.2.53]", "spec.extra.hosts": "[{domain: a.example, address: 192.0.2.7}]",
	"spec.addons.source": "https://a.example/a.yaml", "spec.addons.type": "helm",
}

// TestSecondSpellings: a config with a second spelling means the same as one
// with the first, for every one of them, and for every word.
func TestSecondSpellings(t *testing.T) {
	for _, a := range Aliases() {
		try := func(name, path, value, first, want string) {
			t.Run(name, func(t *testing.T) {
				if diff := cmp.Diff(written(t, first, want, a.Runtime), written(t, path, value, a.Runtime)); diff != "" {
					t.Errorf("as %s (-first +second):\n%s", path, diff)
				}
			})
		}
		value, ok := aliasValues[a.To]
		if !ok {
			t.Errorf("%s: no value to try", a.To)
			continue
		}
		if a.From != a.To {
			try(a.From, a.From, value, a.To, value)
		}
		for _, w := range a.SortedWords() {
			try(a.From+"="+w, a.From, w, a.To, a.Words[w])
		}
		if a.Scalar != "" {
			try(a.From+" as a plain value", a.From, aliasValues[a.Scalar], a.Scalar, aliasValues[a.Scalar])
		}
		if a.Lines {
			try(a.From+" as lines", a.From, `"192.0.2.7 a.example"`, a.To, value)
		}
	}
}

// written gives what the fields at a path come to, without defaults, under a
// runtime if one is named.
func written(t *testing.T, path, value, runtime string) string {
	t.Helper()
	text := nested(path, value)
	if runtime != "" {
		text = strings.Replace(text, "{runtime: {", "{runtime: {type: "+runtime+", ", 1)
	}
	d := parse(strings.NewReader(text))
	d.moveAliases()
	c := d.walkCluster()
	if problems := d.Problems(); problems.Err() != nil {
		t.Fatal(problems)
	}
	return string(d.public(c))
}

// nested writes a document with one value; in spec.addons it is of an entry.
func nested(path, value string) string {
	if rest, ok := strings.CutPrefix(path, "spec.addons."); ok {
		return "apiVersion: kubexm.mensylisir.io/v1alpha1\nkind: Cluster\nmetadata: {name: demo}\nspec: {kubernetes: {version: v1.34.10}, addons: [{name: a, " + rest + ": " + value + "}]}\n"
	}
	text, end := "", ""
	for _, name := range strings.Split(path, ".") {
		text += "{" + name + ": "
		end += "}"
	}
	return text + value + end + "\n"
}

// TestSources reads a document of sources.
func TestSources(t *testing.T) {
	s, problems := DecodeSources(strings.NewReader("apiVersion: kubexm.mensylisir.io/v1alpha1\nkind: Sources\nspec: {zone: cn, caFile: ca.pem, replace: {from: docker.io, to: 'http://m.example', plainHTTP: true}}\n"))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	want := Sources{Zone: "cn", CAFile: "ca.pem", Replace: []Replacement{{From: "docker.io", To: "http://m.example", PlainHTTP: true}}}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Error(diff)
	}
	if _, problems := DecodeSources(strings.NewReader(header)); problems.Err() == nil {
		t.Error("a cluster passed as sources")
	}
}
