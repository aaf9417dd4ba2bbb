package steptest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// Kube is a simulated cluster: the effects of kubeadm, kubectl, helm and others on
// simulated hosts. Its objects are files below etcd's data folder on the first control
// plane node, so that a snapshot of that host includes the cluster, and a reset deletes it.
//
// It implements as much of Kubernetes as steps rely on. It fails where the real programs
// fail: if a program is not installed, no API server answers, a namespace, kind or token
// does not exist, or a node lacks an image.
type Kube struct {
	cluster *manifest.Cluster
	mu      sync.Mutex // one program at a time
	hosts   map[string]*conntest.Sim
	master  string
	// stands makes the cluster answer even if its programs are not installed.
	stands bool
	// The members of an etcd that runs as a service, as etcd knows them; none before its first
	// member has started.
	roster  []*etcdMember
	index   uint64            // last entry of the log of etcd's leader
	located map[string]string // addresses of hosts, also of those that the config no longer lists
	refused map[string]bool   // changes of the membership that were refused once
	silent  map[string]bool   // control plane nodes whose API servers do not answer
	// Disturbs makes kubelet and kube-proxy change kernel settings and firewall tables of
	// their hosts, as the real ones do.
	Disturbs bool
	// Salt changes the keys of clusters that are created later.
	Salt string
	// Outside stores the objects: an etcd that exists already. Nil means a host of the cluster.
	Outside *conntest.Sim
	// DataDir is etcd's data folder; empty means the one in the config.
	DataDir string
	// Holds reports whether the site's registry contains an image, by its upstream
	// reference; nil means always.
	Holds func(reference string) bool
	// Unhealthy are pods that do not run or are not ready, and etcd members that do not answer:
	// "kube-apiserver-m1", "kube-flannel-ds-w1", "etcd-e1".
	Unhealthy []string
	// Lingering are pods that do not end when they are deleted: "default/web-0".
	Lingering []string
	// Learner is a non-voting etcd member, Alarm an etcd alarm, and Kubelets the versions
	// of kubelets by node; the default version is the config's.
	Learner, Alarm string
	Kubelets       map[string]string
	// Silent are nodes whose kubelets have not reported since they started.
	Silent map[string]bool
	// Stuck is an etcd learner that never catches up.
	Stuck string
	// Sizes and InUse are the bytes of the members' databases, and of the part that holds data;
	// the defaults are 20 MiB and 10 MiB. A defragmentation changes Sizes.
	Sizes, InUse map[string]int64
	// OnSandboxStop is called when a sandbox of a static pod is stopped; it may be nil.
	OnSandboxStop func()
	// Outlives means that the cluster outlives a reset of its first control plane node. Without
	// it the objects are deleted with that node, as in a deletion of the cluster.
	Outlives bool
	// Elections counts how often the etcd leader was stopped.
	Elections int
	// Stranded lists control plane nodes whose etcd member was removed while their API server served.
	Stranded []string
	// Orphaned lists nodes that were deleted while Services forwarded to their pods.
	Orphaned []string

	leader  string
	started map[string]int // how often a static pod was stopped: "etcd-m1"
	// manifests are the manifests of static pods when they were last asked for: "kube-apiserver-m1".
	manifests map[string]string
	// usedConfig is the digest of the configuration that the load balancer on a worker uses.
	usedConfig map[string]string
	// vip is the master that kube-vip chose last, and strayVIP are hosts on which it was killed.
	vip      string
	strayVIP map[string]bool
	stops    []string
	// abandoned are nodes whose pods were deleted without their kubelets.
	abandoned map[string]bool
	// BeforePhase is called before each phase of kubeadm on a host ("init: certs"), and may
	// block. If it returns false, kubeadm ends as if killed. Nil means no interruption.
	BeforePhase func(host, part string) bool
}

// killed is the result of a killed program.
var killed = connector.Result{Exit: 137}

// goesOn reports whether kubeadm continues with a phase. Other programs may run meanwhile.
func (k *Kube) goesOn(host, part string) bool {
	if k.BeforePhase == nil {
		return true
	}
	k.mu.Unlock()
	defer k.mu.Lock()
	return k.BeforePhase(host, part)
}

// adminConf is the administrator's kubeconfig on a master.
const adminConf = "/etc/kubernetes/admin.conf"

// NewKube returns a cluster that does not exist yet: kubeadm creates it.
func NewKube(c *manifest.Cluster) *Kube {
	return &Kube{cluster: c, hosts: map[string]*conntest.Sim{}, index: 12, located: map[string]string{}, refused: map[string]bool{}, silent: map[string]bool{}, started: map[string]int{}, manifests: map[string]string{}, usedConfig: map[string]string{}, strayVIP: map[string]bool{}, abandoned: map[string]bool{}, master: c.HostsWith(manifest.RoleMaster)[0].Name}
}

// On installs the cluster's programs on a host.
func (k *Kube) On(s *conntest.Sim, host string) {
	k.hosts[host] = s
	programs := map[string]func(call) connector.Result{"kubectl": k.kubectl, "kubeadm": k.kubeadm, "helm": k.helm, "crictl": k.crictl, "etcdctl": k.etcdctl}
	for name, do := range k.engine().programs {
		programs[name] = func(c call) connector.Result { return do(k, c) }
	}
	for name, do := range programs {
		s.HandleProgram(name, func(c connector.Cmd, stdin []byte) (connector.Result, bool) {
			if _, ok := s.File("/usr/local/bin/" + name); !ok && !k.stands {
				return failed(127, "/usr/bin/env: '%s': No such file or directory", name), true
			}
			k.mu.Lock()
			defer k.mu.Unlock()
			return do(parse(s, host, c.Argv, stdin)), true
		})
	}
	s.HandleProgram("env", func(c connector.Cmd, stdin []byte) (connector.Result, bool) { // helm, told where its cache is
		argv := c.Argv[1:]
		for len(argv) > 0 && strings.Contains(argv[0], "=") {
			argv = argv[1:]
		}
		if len(argv) == 0 || argv[0] != "helm" {
			return connector.Result{}, false
		}
		if _, ok := s.File("/usr/local/bin/helm"); !ok && !k.stands {
			return failed(127, "env: 'helm': No such file or directory"), true
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.helm(parse(s, host, argv, stdin)), true
	})
	for _, name := range []string{"ip", "ipset", "iptables-save", "ip6tables-save", "umount", "find"} { // the kernel has no rules of a cluster, no mounts and no maps
		s.HandleProgram(name, func(connector.Cmd, []byte) (connector.Result, bool) {
			return connector.Result{Exit: map[string]int{"ip": 1, "umount": 32, "find": 1}[name]}, true
		})
	}
	Nft(s)
	k.workerBalancer(s, host)
	k.addresses(s, host)
}

// call is one run of a program.
type call struct {
	sim   *conntest.Sim
	host  string
	flags map[string]string
	words []string // without flags
	stdin []byte
}

// noValue are the flags that take no value after a space.
var noValue = []string{"--force", "--install", "--create-namespace", "--reset-values", "--wait", "--ignore-not-found", "--overwrite",
	"--ignore-daemonsets", "--delete-emptydir-data", "--server-side", "--force-conflicts", "--skip-token-print", "--quiet", "-A", "--sync", "--local", "--no-headers", "--cluster", "--learner", "--disable-eviction"}

func parse(s *conntest.Sim, host string, argv []string, stdin []byte) call {
	c := call{sim: s, host: host, flags: map[string]string{}, stdin: stdin}
	for i := 1; i < len(argv); i++ {
		name, value, has := strings.Cut(argv[i], "=")
		switch {
		case !strings.HasPrefix(name, "-"):
			c.words = append(c.words, argv[i])
		case has || slices.Contains(noValue, name) || i+1 == len(argv):
			c.flags[name] = value
		default:
			i++
			c.flags[name] = argv[i]
		}
	}
	return c
}

func failed(exit int, format string, args ...any) connector.Result {
	return connector.Result{Exit: exit, Stderr: []byte(fmt.Sprintf(format, args...) + "\n")}
}

func prints(format string, args ...any) connector.Result {
	return connector.Result{Stdout: []byte(fmt.Sprintf(format, args...))}
}

// first returns the first control plane node.
func (k *Kube) first() *conntest.Sim { return k.hosts[k.master] }

// up reports whether any API server answers.
func (k *Kube) up() bool {
	return slices.ContainsFunc(k.cluster.HostsWith(manifest.RoleMaster), func(h manifest.Host) bool { return k.serves(h.Name) })
}

// Silence makes the API server of a control plane node stop answering, or answer again.
// Everything else on the node continues.
func (k *Kube) Silence(host string, silent bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.silent[host] = silent
}

// serves reports whether the API server of a host answers.
func (k *Kube) serves(host string) bool {
	m := k.hosts[host]
	if m == nil || k.silent[host] {
		return false
	}
	if m.Read("/etc/kubernetes/manifests/kube-apiserver.yaml") == "" {
		return false
	}
	for _, key := range k.shared() {
		if _, ok := m.File("/etc/kubernetes/pki/" + key); ok && m.Read("/etc/kubernetes/pki/"+key) == "" { // lost with the power
			return false
		}
	}
	return k.stands || m.Unit("kubelet.service").Active && k.engineRuns(m) && k.agreed()
}

// Object is an object of the cluster as decoded JSON.
type Object = map[string]any

func newObject(api, kind, namespace, name string) Object {
	meta := Object{"name": name}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	return Object{"apiVersion": api, "kind": kind, "metadata": meta}
}

// at returns the value at a path of keys, or nil.
func at(o any, keys ...string) any {
	for _, key := range keys {
		m, ok := o.(Object)
		if !ok {
			return nil
		}
		o = m[key]
	}
	return o
}

func word(o any, keys ...string) string {
	s, ok := at(o, keys...).(string)
	if !ok {
		return ""
	}
	return s
}

// clusterWide are kinds without a namespace.
var clusterWide = []string{"Namespace", "Node", "EtcdMember", requestKind, "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "PriorityClass", "StorageClass"}

// storeDir returns the folder of the objects.
func (k *Kube) storeDir() string { return path.Join(k.dataDir(), "member") }

// dataDir is etcd's folder.
func (k *Kube) dataDir() string { return cmp.Or(k.DataDir, k.cluster.Spec.Etcd.DataDir) }

// file returns the path of an object.
func (k *Kube) file(o Object) string {
	group, _, ok := strings.Cut(word(o, "apiVersion"), "/")
	if !ok {
		group = "core"
	}
	kind, ns := word(o, "kind"), word(o, "metadata", "namespace")
	switch {
	case slices.Contains(clusterWide, kind):
		ns = "-"
	case ns == "":
		ns = "default"
	}
	return path.Join(k.storeDir(), kind+"."+group, ns, word(o, "metadata", "name"))
}

// get returns the stored object with the identity of o, or nil.
func (k *Kube) get(o Object) Object {
	f, ok := k.store().File(k.file(o))
	if !ok {
		return nil
	}
	var out Object
	if err := json.Unmarshal(f.Data, &out); err != nil {
		return nil
	}
	return out
}

// named returns an object by its identity, or nil.
func (k *Kube) named(api, kind, namespace, name string) Object {
	return k.get(newObject(api, kind, namespace, name))
}

// Object returns an object of the cluster, or nil.
func (k *Kube) Object(api, kind, namespace, name string) Object {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.named(api, kind, namespace, name)
}

// put stores an object.
func (k *Kube) put(o Object) {
	kind := word(o, "kind")
	if !slices.Contains(clusterWide, kind) && word(o, "metadata", "namespace") == "" {
		o = merged(o, Object{"metadata": Object{"namespace": "default"}})
	}
	text, err := json.Marshal(o)
	if err != nil {
		return
	}
	k.store().AddFile(k.file(o), string(text), 0o600)
}

// drop deletes an object. Deleting a namespace deletes its content.
func (k *Kube) drop(o Object) {
	k.store().RemoveAll(k.file(o))
	if ns := word(o, "metadata", "name"); word(o, "kind") == "Namespace" {
		for _, p := range k.store().Below(k.storeDir()) {
			if path.Base(path.Dir(p)) == ns {
				k.store().RemoveAll(p)
			}
		}
		k.tidy()
		return
	}
	for dir := path.Dir(k.file(o)); dir != k.storeDir() && len(k.store().Names(dir)) == 0; dir = path.Dir(dir) {
		k.store().RemoveAll(dir)
	}
}

// tidy deletes empty folders.
func (k *Kube) tidy() {
	for _, p := range slices.Backward(k.store().Below(k.storeDir())) {
		if f, ok := k.store().File(p); ok && f.Mode.IsDir() && len(k.store().Below(p)) == 0 {
			k.store().RemoveAll(p)
		}
	}
}

// all returns the objects of a kind.
func (k *Kube) all(kind string) []Object {
	var out []Object
	for _, name := range k.store().Names(k.storeDir()) {
		if !strings.HasPrefix(name, kind+".") {
			continue
		}
		for _, p := range k.store().Below(k.storeDir() + "/" + name) {
			f, ok := k.store().File(p)
			if !ok || f.Mode.IsDir() {
				continue
			}
			var o Object
			if err := json.Unmarshal(f.Data, &o); err == nil {
				out = append(out, o)
			}
		}
	}
	return out
}

// merged returns under with the fields of over, recursively.
func merged(under, over Object) Object {
	out := maps.Clone(under)
	if out == nil {
		out = Object{}
	}
	for key, v := range over {
		a, isA := out[key].(Object)
		b, isB := v.(Object)
		if isA && isB {
			out[key] = merged(a, b)
		} else {
			out[key] = v
		}
	}
	return out
}
