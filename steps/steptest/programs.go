package steptest

import (
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io/fs"
	"math/big"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// token is the bootstrap token.
const token = "abcdef.0123456789abcdef"

// kubeadm simulates kubeadm: init, join, reset and token.
func (k *Kube) kubeadm(c call) connector.Result {
	if len(c.words) == 0 {
		return failed(1, "kubeadm: nothing to do")
	}
	switch c.words[0] {
	case "init":
		if len(c.words) > 1 {
			return k.initPhase(c)
		}
		return k.init(c)
	case "join":
		return k.join(c)
	case "reset":
		if !k.reset(c) {
			return killed
		}
		return prints("[reset] Stopping the kubelet service\n")
	case "token":
		if !k.reached(c) {
			return failed(1, "Get \"https://%s:6443\": dial tcp: connect: connection refused", k.master)
		}
		k.put(newObject("v1", "Secret", "kube-system", "bootstrap-token-abcdef"))
		return prints("%s\n", token)
	}
	return failed(1, "kube: nobody taught me kubeadm %s", strings.Join(c.words, " "))
}

// preflight simulates kubeadm's preflight checks. It returns nil if they pass.
func (k *Kube) preflight(c call) *connector.Result {
	problem := func(format string, args ...any) *connector.Result {
		r := failed(1, "[preflight] "+format, args...)
		return &r
	}
	var config Object
	if err := yaml.Unmarshal([]byte(c.sim.Read(c.flags["--config"])), &config); err != nil || config == nil {
		return problem("unable to read config from %q", c.flags["--config"])
	}
	if k.stands {
		return nil
	}
	switch {
	case !k.engineRuns(c.sim):
		return problem("[ERROR CRI]: container runtime is not running")
	case !c.sim.Unit("kubelet.service").Exists:
		return problem("[ERROR Service-Kubelet]: kubelet service does not exist")
	case c.words[0] == "init" && k.stacked() && !k.pinned(c.sim, "/etcd:") || !k.pinned(c.sim, "/kube-proxy:"):
		return problem("[ERROR ImagePull]: failed to pull image: no such host")
	case c.sim.Sysctl("net.ipv4.ip_forward") != "1":
		return problem("[ERROR FileContent--proc-sys-net-ipv4-ip_forward]: /proc/sys/net/ipv4/ip_forward contents are not set to 1")
	}
	if bad := k.storeReady(c); c.words[0] == "init" && bad != "" {
		return problem("[ERROR ExternalEtcdVersion]: %s", bad)
	}
	made := []string{"manifests/kube-apiserver.yaml", "kubelet.conf"}
	if !k.isMaster(c.host) { // control plane nodes have the shared keys already
		made = append(made, "pki/ca.crt")
	}
	dir := "DirAvailable-" + strings.ReplaceAll(k.cluster.Spec.Etcd.DataDir, "/", "-")
	if k.stacked() && k.isMaster(c.host) && len(c.sim.Below(k.cluster.Spec.Etcd.DataDir)) > 0 && c.flags["--ignore-preflight-errors"] != dir {
		return problem("[ERROR %s]: %s is not empty", dir, k.cluster.Spec.Etcd.DataDir)
	}
	for _, p := range made {
		if _, ok := c.sim.File("/etc/kubernetes/" + p); ok {
			return problem("[ERROR FileAvailable]: /etc/kubernetes/%s already exists", p)
		}
	}
	return nil
}

// kubelet writes the files of a node that kubeadm has joined, and starts kubelet.
func (k *Kube) kubelet(s *conntest.Sim) {
	s.AddFile("/etc/kubernetes/kubelet.conf", "kubelet's kubeconfig\n", 0o600)
	s.AddFile("/var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\n", 0o644)
	s.AddFile("/var/lib/kubelet/pki/kubelet-client-current.pem", "client certificate\n", 0o600)
	s.StartUnit("kubelet.service")
	k.asks(s)
	if k.Disturbs {
		disturb(s)
	}
	k.proxy(s)
}

func (k *Kube) init(c call) connector.Result {
	if bad := k.preflight(c); bad != nil {
		return *bad
	}
	if !k.found(c.sim) {
		if k.lacksVIP() {
			return failed(1, "error execution phase upload-config/kubeadm: dial tcp %s: connect: no route to host", part.EndpointOf(k.cluster).At())
		}
		return killed
	}
	if !strings.Contains(c.flags["--skip-phases"], "addon/coredns") {
		k.coreDNS()
	}
	return prints("[addons] Applied essential addon: kube-proxy\n")
}

// found simulates the phases of `kubeadm init` in kubeadm's order, but for that of CoreDNS. It
// reports whether all of them ran.
func (k *Kube) found(s *conntest.Sim) bool {
	parts := []struct {
		name string
		do   func()
	}{
		{"certs", func() {
			for _, name := range k.shared() { // existing keys are used
				if _, ok := s.File("/etc/kubernetes/pki/" + name); ok || name == "ca.crt" {
					continue
				}
				mode := fs.FileMode(0o600)
				if !strings.HasSuffix(name, ".key") {
					mode = 0o644
				}
				s.AddFile("/etc/kubernetes/pki/"+name, fmt.Sprintf("the cluster's %s%s\n", name, k.Salt), mode)
			}
			s.AddFile("/etc/kubernetes/pki/ca.crt", Authority(), 0o644)
		}},
		{"kubeconfig", func() {
			k.adminConf(s)
			if minor(k.cluster) >= 29 {
				s.AddFile(superAdminConf, s.Read(adminConf), 0o600)
			}
		}},
		{"control-plane", func() { k.controlPlane(s, k.master) }},
		{"kubelet-start", func() { k.kubelet(s) }},
		{"upload-config", func() {
			for _, ns := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
				k.put(newObject("v1", "Namespace", "", ns))
			}
			k.put(merged(newObject("v1", "ConfigMap", "kube-system", "kubeadm-config"), Object{"data": Object{"ClusterConfiguration": uploaded(s)}}))
			k.put(master(k.master))
		}},
		{"addon/kube-proxy", func() { k.put(newObject("apps/v1", "DaemonSet", "kube-system", "kube-proxy")) }},
	}
	for _, p := range parts {
		if !k.goesOn(k.master, "init: "+p.name) || p.name == "upload-config" && k.lacksVIP() {
			return false
		}
		p.do()
	}
	return true
}

// adminConf writes the administrator's kubeconfig, with the fields that kubeadm writes.
func (*Kube) adminConf(s *conntest.Sim) {
	data := func(kind string) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte("the administrator's")}))
	}
	s.AddFile(adminConf, `apiVersion: v1
kind: Config
clusters: [{name: kubernetes, cluster: {server: "https://lb.kubexm.local:6443", certificate-authority-data: `+base64.StdEncoding.EncodeToString([]byte(Authority()))+`}}]
contexts: [{name: admin, context: {cluster: kubernetes, user: kubernetes-admin}}]
current-context: admin
users: [{name: kubernetes-admin, user: {client-certificate-data: `+data("CERTIFICATE")+`, client-key-data: `+data("EC PRIVATE KEY")+`}}]
`, 0o600)
}

// controlPlane writes the files of a control plane node.
func (k *Kube) controlPlane(s *conntest.Sim, host string) {
	s.AddFile("/etc/kubernetes/manifests/kube-apiserver.yaml", "kind: Pod\n"+k.etcdServers(s), 0o600)
	if k.stacked() {
		s.AddFile("/etc/kubernetes/manifests/etcd.yaml", "kind: Pod\n", 0o600)
		s.AddDir(k.cluster.Spec.Etcd.DataDir, 0o700)
		k.enrol(host)
	}
}

// etcdServers is the part of an API server's manifest that lists the members of an etcd that kubeadm
// does not run, as kubeadm's configuration has them: at init the host's, later the cluster's.
func (k *Kube) etcdServers(s *conntest.Sim) string {
	text := uploaded(s)
	if o := k.named("v1", "ConfigMap", "kube-system", "kubeadm-config"); o != nil {
		text = word(o, "data", "ClusterConfiguration")
	}
	var config struct {
		Etcd struct {
			External struct {
				Endpoints []string `json:"endpoints"`
			} `json:"external"`
		} `json:"etcd"`
	}
	if err := yaml.Unmarshal([]byte(text), &config); err != nil || len(config.Etcd.External.Endpoints) == 0 {
		return ""
	}
	return "spec:\n  containers:\n  - command:\n    - kube-apiserver\n    - --etcd-servers=" + strings.Join(config.Etcd.External.Endpoints, ",") + "\n"
}

func master(name string) Object {
	return merged(newObject("v1", "Node", "", name), Object{"metadata": Object{"labels": Object{"node-role.kubernetes.io/control-plane": ""}}})
}

func (k *Kube) join(c call) connector.Result {
	if bad := k.preflight(c); bad != nil {
		return *bad
	}
	var config Object
	if err := yaml.Unmarshal([]byte(c.sim.Read(c.flags["--config"])), &config); err != nil {
		return failed(1, "%v", err)
	}
	switch {
	case !k.reached(c):
		return failed(1, "error execution phase preflight: couldn't validate the identity of the API Server: connection refused")
	case word(config, "discovery", "bootstrapToken", "token") != token || k.named("v1", "Secret", "kube-system", "bootstrap-token-abcdef") == nil:
		return failed(1, "error execution phase preflight: token id is invalid for this cluster or it has expired")
	}
	if config["controlPlane"] != nil {
		return k.joinMaster(c)
	}
	c.sim.AddFile("/etc/kubernetes/pki/ca.crt", k.first().Read("/etc/kubernetes/pki/ca.crt"), 0o644)
	if !k.goesOn(c.host, "join: kubelet-start") {
		return killed
	}
	k.kubelet(c.sim)
	k.put(newObject("v1", "Node", "", c.host)) // which the kubelet does
	if !k.goesOn(c.host, "join: the rest") {
		return killed
	}
	return prints("This node has joined the cluster\n")
}

// reset simulates `kubeadm reset`, which leaves empty folders and the CNI configuration.
// kubeadm 1.32 deletes etcd's data on any host unless the phase remove-etcd-member is
// skipped. reset reports whether it ran to its end.
func (k *Kube) reset(c call) (ended bool) {
	empty := []string{"/etc/kubernetes/manifests", "/etc/kubernetes/pki", "/var/lib/kubelet"}
	if !strings.Contains(c.flags["--skip-phases"], "remove-etcd-member") {
		k.handOver(c.host)
		k.strike(c.host)
		empty = append(empty, k.dataDir())
	}
	if k.isMaster(c.host) && !k.stacked() {
		k.handOver(c.host)
	}
	k.killKubeVIP(c.host)
	c.sim.StopUnit("kubelet.service")
	if !k.goesOn(c.host, "reset: cleanup-node") {
		return false
	}
	for _, dir := range empty {
		for _, p := range c.sim.Below(dir) {
			c.sim.RemoveAll(p)
		}
	}
	for _, p := range []string{"admin.conf", "super-admin.conf", "kubelet.conf"} {
		c.sim.RemoveAll("/etc/kubernetes/" + p)
	}
	return true
}

// Authority returns the certificate of the cluster's CA in PEM format. It is always the
// same.
func Authority() string { return authorityOf(authorityKey()) }

func authorityOf(key ed25519.PrivateKey) string {
	t := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"},
		NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(nil, t, t, key.Public(), key)
	if err != nil {
		return err.Error()
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// uploaded returns the ClusterConfiguration in the file that kubeadm was given on a host.
func uploaded(s *conntest.Sim) string {
	for doc := range strings.SplitSeq(s.Read("/etc/kubernetes/kubexm-kubeadm.yaml"), "---\n") {
		if strings.Contains(doc, "kind: ClusterConfiguration\n") {
			return doc
		}
	}
	return "kind: ClusterConfiguration\n"
}

// handOver makes another control plane node the first, when the first is reset and leaves the
// cluster: the others have the same objects in their etcd members, and the same keys.
func (k *Kube) handOver(host string) {
	if host != k.master || !k.Outlives {
		return
	}
	for _, h := range k.cluster.HostsWith(manifest.RoleMaster) {
		next := k.hosts[h.Name]
		if h.Name == host || !k.serves(h.Name) || next == nil {
			continue
		}
		if k.stacked() {
			from := k.first()
			for _, p := range from.Below(k.storeDir()) {
				if f, ok := from.File(p); ok && !f.Mode.IsDir() {
					next.AddFile(p, string(f.Data), f.Mode)
				}
			}
		}
		k.master = h.Name
		return
	}
}
