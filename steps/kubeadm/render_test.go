package kubeadm_test

import (
	"flag"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubeadm"
	"github.com/mensylisir/kubexm/steps/steptest"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

const hash = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// two is a master and a worker; what follows is the rest of spec.
const two = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: m1, address: 192.0.2.11, internalAddress: 10.0.0.11}
    - {name: w1, address: 192.0.2.21, internalAddress: 10.0.0.21}
  ssh: {user: root, password: secret}
  roleGroups: {master: [m1], worker: [w1]}
  etcd: {type: kubeadm}
`

// everything is a config that sets each field that kubeadm's documents carry; the
// version is put in.
const everything = `  kubernetes:
    version: VERSION
    clusterName: site.local
    apiServer: {serviceNodePortRange: 30000-31000, certSANs: [k8s.example.com, 203.0.113.5], extraArgs: {audit-log-maxage: 30, --profiling: false}}
    controllerManager: {extraArgs: [bind-address=0.0.0.0, {name: terminated-pod-gc-threshold, value: 500}]}
    scheduler: {extraArgs: {v: 2}}
    kubelet: {cgroupDriver: cgroupfs, extraArgs: {node-ip: 10.0.0.99, v: 4}}
    kubeProxy: {mode: ipvs, masqueradeAll: true, ipvs: {excludeCIDRs: [10.9.0.0/16]}}
    maxPods: 200
    podPidsLimit: 4096
    nodeCidrMaskSize: 23
    featureGates: {CSIStorageCapacity: true, GracefulNodeShutdown: true, InPlacePodVerticalScaling: false}
  controlPlaneEndpoint: {domain: api.site.local, address: 192.0.2.11, port: 7443}
  network: {plugin: flannel, kubePodsCIDR: 10.10.0.0/16, kubeServiceCIDR: 10.20.0.0/16}
  etcd:
    {type: kubeadm, version: v3.5.16, dataDir: /data/etcd, heartbeatInterval: 300, electionTimeout: 3000, snapshotCount: 20000, autoCompactionRetention: 0,
     metrics: extensive, quotaBackendBytes: 8589934592, maxRequestBytes: 2097152, maxSnapshots: 3, maxWals: 0, logLevel: warn, extraArgs: {snapshot-count: 30000}}
`

var renders = map[string]struct {
	spec  string
	facts func(*steps.Host)
}{
	"1.30":                   {spec: "  kubernetes: {version: v1.30.14, kubelet: {extraArgs: {v: 4}}}\n"},
	"1.32":                   {spec: "  kubernetes: {version: v1.32.2, kubelet: {extraArgs: {v: 4}}}\n"},
	"1.35-cgroup-v1":         {spec: "  kubernetes: {version: v1.35.1}\n", facts: func(h *steps.Host) { h.Facts.CgroupV2 = false }},
	"1.34-systemd-resolved":  {spec: "  kubernetes: {version: v1.34.10}\n", facts: func(h *steps.Host) { h.Facts.Resolv.Kind = "systemd-resolved-stub" }},
	"dual-stack":             {spec: "  kubernetes: {version: v1.34.10, nodeCidrMaskSize: 25, nodeCidrMaskSizeIPv6: 112}\n  network: {plugin: flannel, kubePodsCIDR: '10.233.64.0/18,fd00:10::/96', kubeServiceCIDR: '10.233.0.0/18,fd00:20::/112'}\n"},
	"feature-gates-left-out": {spec: "  kubernetes: {version: v1.32.2, featureGates: {TTLAfterFinished: true, CSIStorageCapacity: true, GracefulNodeShutdown: true, InPlacePodVerticalScaling: false}}\n"},
	"extra-args-count":       {spec: "  kubernetes: {version: v1.34.10, apiServer: {serviceNodePortRange: 30000-31000, certSANs: [k8s.example.com, 203.0.113.5], extraArgs: {service-node-port-range: 40000-41000, audit-log-maxage: 30}}, controllerManager: {extraArgs: {node-cidr-mask-size: 26}}, scheduler: {extraArgs: {v: 2}}, kubelet: {extraArgs: {node-ip: 10.0.0.99}}}\n  etcd: {type: kubeadm, dataDir: /data/etcd, quotaBackendBytes: 8589934592, autoCompactionRetention: 8, extraArgs: {heartbeat-interval: 100}}\n"},
	"everything-1.30":        {spec: strings.Replace(everything, "VERSION", "v1.30.14", 1)},
	"everything-1.32":        {spec: strings.Replace(everything, "VERSION", "v1.32.2", 1)},
	"behind-a-balancer":      {spec: "  kubernetes: {version: v1.32.2, kubeProxy: {mode: iptables, masqueradeAll: true}}\n  controlPlaneEndpoint: {domain: api.site.local, address: 192.0.2.100, port: 443}\n  loadBalancer: {external: {type: external}}\n"},
	"dns-outside":            {spec: "  kubernetes: {version: v1.32.2, kubeProxy: {mode: nftables, masqueradeAll: true}}\n  controlPlaneEndpoint: {domain: api.example.com, externalDNS: true, port: 443}\n"},
	"relaxed-1.34":           {spec: "  kubernetes: {version: v1.34.10, hardening: {relax: [anonymous, audit, encryption, kernelDefaults, profiling, tls], podSecurity: restricted}}\n"},
	"own-authentication":     {spec: "  kubernetes: {version: v1.34.10, apiServer: {extraArgs: {oidc-issuer-url: 'https://id.example.com', oidc-client-id: k8s}}}\n"},
	"etcd-of-ours":           {spec: "  kubernetes: {version: v1.32.2}\n  etcd: {type: kubexm, version: v3.5.16}\n"},
	"etcd-external":          {spec: "  kubernetes: {version: v1.30.14}\n  etcd: {type: external, external: {endpoints: ['https://192.0.2.41:2379', 'https://192.0.2.42:2379'], caFile: /pki/ca, certFile: /pki/cert, keyFile: /pki/key}}\n"},
	"etcd-without-tls":       {spec: "  kubernetes: {version: v1.32.2}\n  etcd: {type: external, external: {endpoints: ['http://192.0.2.41:2379']}}\n"},
	"ipv6":                   {spec: "  kubernetes: {version: v1.32.2, nodeCidrMaskSizeIPv6: 112}\n  network: {plugin: flannel, kubePodsCIDR: 'fd00:10::/96', kubeServiceCIDR: 'fd00:20::/112'}\n"},
	"ipv6-first":             {spec: "  kubernetes: {version: v1.32.2, nodeCidrMaskSizeIPv6: 112}\n  network: {plugin: flannel, kubePodsCIDR: 'fd00:10::/96,10.233.64.0/18', kubeServiceCIDR: 'fd00:20::/112,10.233.0.0/18'}\n"},
}

func at(t *testing.T, c *manifest.Cluster, name string, facts func(*steps.Host)) *steps.Host {
	t.Helper()
	kase := steptest.Case{Cluster: c}
	for _, h := range c.Spec.Hosts {
		if h.Name == name {
			kase.Host = h
		}
	}
	h := kase.NewHost(t, kase.Sim(t), kubeadm.Init(c))
	if facts != nil {
		facts(h)
	}
	return h
}

// spec puts the parts that a case writes in place of those of two.
func spec(text string) string {
	base := two
	if strings.Contains(text, "  etcd:") {
		base = strings.Replace(base, "  etcd: {type: kubeadm}\n", "", 1)
	}
	if !strings.Contains(text, "  network:") {
		base += "  network: {plugin: flannel}\n"
	}
	return base + text
}

func TestConfigsOfKubeadm(t *testing.T) {
	for name, r := range renders {
		t.Run(name, func(t *testing.T) {
			config := spec(r.spec)
			if strings.Contains(r.spec, "fd00:") {
				config = strings.NewReplacer("10.0.0.11}", "'10.0.0.11,fd00::11'}", "10.0.0.21}", "'10.0.0.21,fd00::21'}").Replace(config)
			}
			c := steptest.Cluster(t, config)
			init, err := kubeadm.InitConfig(c, at(t, c, "m1", r.facts))
			if err != nil {
				t.Fatal(err)
			}
			var kinds []string
			for _, d := range steptest.YAML(t, init) {
				kind, _ := d["kind"].(string)
				kinds = append(kinds, kind)
			}
			if got := strings.Join(kinds, " "); got != "InitConfiguration ClusterConfiguration KubeletConfiguration KubeProxyConfiguration" {
				t.Errorf("kinds %s", got)
			}
			steptest.Golden(t, *update, "init-"+name+".yaml", string(init))
			join, err := kubeadm.JoinConfig(c, at(t, c, "w1", r.facts), kubeadm.Token{Value: "abcdef.0123456789abcdef", CAHash: hash})
			if err != nil {
				t.Fatal(err)
			}
			steptest.YAML(t, join)
			steptest.Golden(t, *update, "join-"+name+".yaml", string(join))
		})
	}
}

// TestJoinOfAMaster: another master listens where the first one does, and one
// that is a worker too has no taint.
func TestJoinOfAMaster(t *testing.T) {
	for _, version := range []string{"v1.30.14", "v1.32.2"} {
		c := steptest.Cluster(t, strings.NewReplacer("worker: [w1]", "worker: [m1, w1]", "master: [m1]", "master: [w1, m1]").
			Replace(spec("  kubernetes: {version: "+version+"}\n  controlPlaneEndpoint: {port: 7443}\n")))
		join, err := kubeadm.JoinConfig(c, at(t, c, "m1", nil), kubeadm.Token{Value: "abcdef.0123456789abcdef", CAHash: hash})
		if err != nil {
			t.Fatal(err)
		}
		steptest.Golden(t, *update, "join-master-and-worker-"+version[1:5]+".yaml", string(join))
	}
}

func TestMasterThatIsAWorkerHasNoTaint(t *testing.T) {
	c := steptest.Cluster(t, strings.Replace(spec("  kubernetes: {version: v1.34.10}\n"), "worker: [w1]", "worker: [m1, w1]", 1))
	init, err := kubeadm.InitConfig(c, at(t, c, "m1", nil))
	if err != nil {
		t.Fatal(err)
	}
	reg, _ := steptest.YAML(t, init)[0]["nodeRegistration"].(map[string]any)
	if taints, ok := reg["taints"].([]any); !ok || len(taints) != 0 {
		t.Errorf("taints are %v: kubeadm would put its own there", reg["taints"])
	}
	alone := steptest.Cluster(t, spec("  kubernetes: {version: v1.34.10}\n"))
	if init, err = kubeadm.InitConfig(alone, at(t, alone, "m1", nil)); err != nil {
		t.Fatal(err)
	}
	reg, _ = steptest.YAML(t, init)[0]["nodeRegistration"].(map[string]any)
	if _, ok := reg["taints"]; ok {
		t.Error("a master that is no worker has taints written: kubeadm's own are left to it")
	}
}
