package network

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/steps/steptest"
)

// calicoNode is what kubexm sets of calico.
type calicoNode struct {
	Backend, MTU, IPAM string
	Env                map[string]string
	Probes             []string
}

func TestCalicoTakesTheConfig(t *testing.T) {
	upstream, err := os.ReadFile("testdata/calico.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const ipam = `"type": "calico-ipam"`
	bird, felix := []string{"-felix-live", "-bird-live", "-felix-ready", "-bird-ready"}, []string{"-felix-live", "-felix-ready"}
	four := func(ipip, vxlan, clusterType, pods, block string) map[string]string {
		return map[string]string{
			"CLUSTER_TYPE": clusterType, "FELIX_USAGEREPORTINGENABLED": "false", "IP": "autodetect", "IP_AUTODETECTION_METHOD": "kubernetes-internal-ip", "CALICO_IPV4POOL_CIDR": pods,
			"CALICO_IPV4POOL_IPIP": ipip, "CALICO_IPV4POOL_VXLAN": vxlan, "CALICO_IPV4POOL_BLOCK_SIZE": block,
			"CALICO_IPV6POOL_VXLAN": "Never", "FELIX_IPV6SUPPORT": "false",
		}
	}
	six := func(vxlan string, of map[string]string) map[string]string {
		for k, v := range map[string]string{
			"IP6": "autodetect", "IP6_AUTODETECTION_METHOD": "kubernetes-internal-ip", "CALICO_IPV6POOL_CIDR": "fd00:10::/48",
			"CALICO_IPV6POOL_VXLAN": vxlan, "CALICO_IPV6POOL_NAT_OUTGOING": "true", "FELIX_IPV6SUPPORT": "true",
		} {
			of[k] = v
		}
		return of
	}
	const both = "plugin: calico, kubePodsCIDR: '10.233.64.0/18,fd00:10::/48', kubeServiceCIDR: '10.233.0.0/18,fd00:20::/112'"
	for name, c := range map[string]struct {
		network string
		want    calicoNode
	}{
		"default": {"plugin: calico", calicoNode{"bird", "0", ipam, four("Always", "Never", "k8s,bgp", "10.233.64.0/18", "26"), bird}},
		"vxlan":   {"plugin: calico, calico: {vxlanMode: Always}", calicoNode{"vxlan", "0", ipam, four("Never", "Always", "k8s", "10.233.64.0/18", "26"), felix}},
		"vxlan between subnets": {
			"plugin: calico, calico: {vxlanMode: CrossSubnet, vethMTU: 1400}, ippool: {blockSize: 24}, kubePodsCIDR: 10.9.0.0/16",
			calicoNode{"vxlan", "1400", ipam, four("Never", "CrossSubnet", "k8s", "10.9.0.0/16", "24"), felix},
		},
		"no encapsulation": {"plugin: calico, calico: {ipipMode: Never}", calicoNode{"bird", "0", ipam, four("Never", "Never", "k8s,bgp", "10.233.64.0/18", "26"), bird}},
		"dual-stack": {
			both + ", calico: {vxlanMode: Always}",
			calicoNode{"vxlan", "0", ipam + `, "assign_ipv4": "true", "assign_ipv6": "true"`, six("Always", four("Never", "Always", "k8s", "10.233.64.0/18", "26")), felix},
		},
		"dual-stack by BGP": {
			both, calicoNode{"bird", "0", ipam + `, "assign_ipv4": "true", "assign_ipv6": "true"`, six("Never", four("Always", "Never", "k8s,bgp", "10.233.64.0/18", "26")), bird},
		},
		"ipv6": {
			"plugin: calico, kubePodsCIDR: 'fd00:10::/48', kubeServiceCIDR: 'fd00:20::/112', calico: {vxlanMode: Always}",
			calicoNode{"vxlan", "0", ipam + `, "assign_ipv4": "false", "assign_ipv6": "true"`, six("Always", map[string]string{
				"CLUSTER_TYPE": "k8s", "FELIX_USAGEREPORTINGENABLED": "false", "IP": "none", "CALICO_ROUTER_ID": "hash", "CALICO_IPV4POOL_IPIP": "Always", "CALICO_IPV4POOL_VXLAN": "Never",
			}), felix},
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := strings.Replace(steptest.Small, "plugin: flannel", c.network, 1)
			switch {
			case strings.HasPrefix(name, "dual-stack"):
				config = strings.Replace(config, "192.0.2.11}", "192.0.2.11, internalAddress: '10.0.0.11,fd00::11'}", 1)
			case name == "ipv6":
				config = strings.Replace(config, "192.0.2.11}", "192.0.2.11, internalAddress: 'fd00::11'}", 1)
			}
			out, err := calicoFor(steptest.Cluster(t, config), upstream)
			if err != nil {
				t.Fatal(err)
			}
			docs := steptest.YAML(t, out)
			if d := cmp.Diff(c.want, calicoNodeOf(t, docs)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if d := cmp.Diff(steptest.YAML(t, upstream)[2], docs[2]); d != "" {
				t.Errorf("the Deployment changed:\n%s", d)
			}
			if text := string(out); strings.Contains(text, "mount-bpffs") || !strings.Contains(text, "- name: SKIP_CNI_BINARIES\n              value: bandwidth,flannel,") {
				t.Errorf("the init containers are others:\n%s", out)
			}
		})
	}
}

// TestCalicoOfLaterReleases: the data plane for nftables, and the name of the container for eBPF from
// v3.31 on.
func TestCalicoOfLaterReleases(t *testing.T) {
	upstream, err := os.ReadFile("testdata/calico.yaml")
	if err != nil {
		t.Fatal(err)
	}
	later := strings.Replace(string(upstream), "mount-bpffs", "ebpf-bootstrap", 1)
	config := strings.Replace(steptest.Small, "plugin: flannel", "plugin: calico", 1)
	for mode, want := range map[string]string{"nftables": "Enabled", "iptables": ""} {
		c := steptest.Cluster(t, config)
		c.Spec.Kubernetes.KubeProxy.Mode = mode
		out, err := calicoFor(c, []byte(later))
		if err != nil {
			t.Fatal(err)
		}
		if got := calicoNodeOf(t, steptest.YAML(t, out)).Env["FELIX_NFTABLESMODE"]; got != want {
			t.Errorf("%s: FELIX_NFTABLESMODE is %q, want %q", mode, got, want)
		}
		if strings.Contains(string(out), "ebpf-bootstrap") {
			t.Errorf("%s: the container for eBPF is there", mode)
		}
	}
}

// calicoNodeOf reads it from a manifest. Variables that no config changes are left out.
func calicoNodeOf(t *testing.T, docs []map[string]any) calicoNode {
	t.Helper()
	data := mapAt(t, docs[0], "data")
	out := calicoNode{Env: map[string]string{}}
	out.Backend, _ = data["calico_backend"].(string)
	out.MTU, _ = data["veth_mtu"].(string)
	text, _ := data["cni_network_config"].(string)
	for line := range strings.Lines(text) {
		if strings.Contains(line, "calico-ipam") {
			out.IPAM = strings.TrimSpace(line)
		}
	}
	containers, _ := mapAt(t, docs[1], "spec", "template", "spec")["containers"].([]any)
	container, ok := containers[0].(map[string]any)
	if !ok {
		t.Fatalf("%v", containers)
	}
	env, _ := container["env"].([]any)
	for _, e := range env {
		v, _ := e.(map[string]any)
		name, _ := v["name"].(string)
		value, isText := v["value"].(string)
		if !isText && v["valueFrom"] == nil {
			t.Errorf("%s is %v, and not text", name, v["value"])
		}
		if _, twice := out.Env[name]; twice {
			t.Errorf("%s is set twice", name)
		}
		if name != "DATASTORE_TYPE" && name != "NODENAME" && name != "FELIX_HEALTHENABLED" {
			out.Env[name] = value
		}
	}
	for _, probe := range []string{"livenessProbe", "readinessProbe"} {
		words, _ := mapAt(t, container, probe, "exec")["command"].([]any)
		for _, w := range words[1:] {
			word, _ := w.(string)
			out.Probes = append(out.Probes, word)
		}
	}
	return out
}

// mapAt returns the mapping at a path of keys.
func mapAt(t *testing.T, m map[string]any, path ...string) map[string]any {
	t.Helper()
	for _, key := range path {
		next, ok := m[key].(map[string]any)
		if !ok {
			t.Fatalf("%s of %q is no mapping", key, path)
		}
		m = next
	}
	return m
}

func TestCalicoRefusesAnotherManifest(t *testing.T) {
	upstream, err := os.ReadFile("testdata/calico.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dual := strings.NewReplacer("plugin: flannel", "plugin: calico, calico: {vxlanMode: Always}, kubePodsCIDR: '10.233.64.0/18,fd00:10::/48', kubeServiceCIDR: '10.233.0.0/18,fd00:20::/112'",
		"192.0.2.11}", "192.0.2.11, internalAddress: '10.0.0.11,fd00::11'}").Replace(steptest.Small)
	c := steptest.Cluster(t, dual)
	for _, x := range []struct{ from, to, says string }{
		{"name: calico-config", "name: another", "no ConfigMap calico-config"},
		{"calico_backend", "another", "no calico_backend"},
		{"veth_mtu", "another", "no veth_mtu"},
		{`"type": "calico-ipam"`, "", "does not name calico-ipam once"},
		{"name: calico-node\n  namespace", "name: another\n  namespace", "no DaemonSet calico-node"},
		{"- name: calico-node\n", "- name: another\n", "no container calico-node"},
		{"- name: install-cni", "- name: another", "no init container install-cni"},
		{"          env:\n            - name: DATASTORE_TYPE", "          another:\n            - name: DATASTORE_TYPE", "no environment"},
		{"readinessProbe:", "another:", "no readinessProbe"},
	} {
		text := strings.Replace(string(upstream), x.from, x.to, 1)
		if out, err := calicoFor(c, []byte(text)); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("without %q: %v, gave\n%s", x.from, err, out)
		}
	}
	for _, text := range []string{"", "kind: [\n"} {
		if _, err := calicoFor(c, []byte(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}
