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
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// Kube is a cluster in memory: what kubeadm, kubectl and helm do on hosts that
// are simulated. Its objects are files of the first master, below etcd's folder,
// so that a snapshot of that host holds the cluster, and a reset takes it away.
//
// It knows as much of Kubernetes as steps rely on, and refuses what the real
// programs refuse: a program that is not installed, an API server that is not
// there, an object in a namespace that does not exist, a kind that nobody
// defined, a token that nobody minted, an image that the node has not.
type Kube struct {
	cluster *manifest.Cluster
	mu      sync.Mutex // one program at a time
	hosts   map[string]*conntest.Sim
	master  string
	// stands spares the programs: the cluster answers, whatever is installed.
	stands bool
	// Of a store that is a service: who was removed, who was added and has not started,
	// and who has started once.
	struck, added, formed map[string]bool
	refused               map[string]bool // changes of members, by member asked
	silent                map[string]bool // masters whose API servers do not answer
	// Disturbs has kubelets and kube-proxies change their hosts as real ones do.
	Disturbs bool
	// Salt makes the keys of a cluster that is made from now on others than before.
	Salt string
	// DataDir is where etcd's data lies, whatever the config says by now; empty: where
	// the config says.
	DataDir string
	// Holds tells whether the site's registry holds an image, by its upstream
	// reference; nil: it does.
	Holds func(reference string) bool
	// Sick are pods that do not run or are not ready, and members that do not answer:
	// "kube-apiserver-m1", "kube-flannel-ds-w1", "etcd-e1".
	Sick []string
	// Learner is a member that does not vote, Alarm what the store warns of, Kubelets the
	// versions of kubelets by node; those of others are the config's.
	Learner, Alarm string
	Kubelets       map[string]string
	// Falls is called when a sandbox of a static pod is stopped; it may be nil.
	Falls func()
	// Elections counts how often a member was stopped that led the others.
	Elections int

	leader  string
	started map[string]int // how often a static pod was stopped: "etcd-m1"
	stops   []string
	// Between is told of each part of kubeadm's work on a host before it begins
	// ("init: certs"), and may take its time; false ends kubeadm there, as a kill
	// does. nil: all of it happens at once.
	Between func(host, part string) bool
}

// killed is how a program ends that somebody kills.
var killed = connector.Result{Exit: 137}

// goesOn tells whether kubeadm lives to begin a part. Others get their turn
// meanwhile.
func (k *Kube) goesOn(host, part string) bool {
	if k.Between == nil {
		return true
	}
	k.mu.Unlock()
	defer k.mu.Lock()
	return k.Between(host, part)
}

// adminConf is the administrator's kubeconfig on a master.
const adminConf = "/etc/kubernetes/admin.conf"

// NewKube gives a cluster that is not there yet: kubeadm makes it.
func NewKube(c *manifest.Cluster) *Kube {
	return &Kube{cluster: c, hosts: map[string]*conntest.Sim{}, struck: map[string]bool{}, added: map[string]bool{}, formed: map[string]bool{}, refused: map[string]bool{}, silent: map[string]bool{}, started: map[string]int{}, master: c.HostsWith(manifest.RoleMaster)[0].Name}
}

// Standing gives a cluster of one host that stands already, for steps that speak
// to one: they find what kubeadm leaves behind.
func Standing(c *manifest.Cluster) func(*conntest.Sim) {
	return func(s *conntest.Sim) { StandingKube(c, s) }
}

// StandingKube is Standing on a host, and gives the cluster to change.
func StandingKube(c *manifest.Cluster, s *conntest.Sim) *Kube {
	k := NewKube(c)
	k.stands = true
	k.On(s, k.master)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.found(s)
	for _, h := range c.Spec.Hosts[1:] {
		k.put(newObject("v1", "Node", "", h.Name))
	}
	return k
}

// StandingWith gives a cluster that stands on its first master, and the other
// hosts with the programs to join it.
func StandingWith(t conntest.TB, c *manifest.Cluster) (*Kube, map[string]*conntest.Sim) {
	k := NewKube(c)
	k.stands = true
	for _, h := range c.Spec.Hosts {
		s := conntest.New(t)
		s.AddUnit("kubelet.service", "[Service]\nExecStart=/usr/local/bin/kubelet\n[Install]\nWantedBy=multi-user.target\n", false, true)
		k.On(s, h.Name)
	}
	k.found(k.first())
	return k, k.hosts
}

// On puts the cluster's programs on a host.
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
	for _, name := range []string{"ip", "ipset", "iptables-save", "ip6tables-save"} { // no rules of a cluster's are in the kernel
		s.HandleProgram(name, func(connector.Cmd, []byte) (connector.Result, bool) {
			return connector.Result{Exit: map[string]int{"ip": 1}[name]}, true
		})
	}
	Nft(s)
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
	"--ignore-daemonsets", "--delete-emptydir-data", "--server-side", "--force-conflicts", "--skip-token-print", "--quiet", "-A", "--sync", "--local", "--no-headers", "--cluster"}

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

// first is the host that the cluster's store lies on.
func (k *Kube) first() *conntest.Sim { return k.hosts[k.master] }

// up tells whether the API server of a master answers.
func (k *Kube) up() bool {
	return slices.ContainsFunc(k.cluster.HostsWith(manifest.RoleMaster), func(h manifest.Host) bool { return k.serves(h.Name) })
}

// Silence has the API server of a master not answer, or answer again. All else there
// goes on.
func (k *Kube) Silence(host string, silent bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.silent[host] = silent
}

// reached tells whether a program on a host reaches an API server: the one that it is
// told, or one that the control plane's name means there.
func (k *Kube) reached(c call) bool {
	if server := c.flags["--server"]; server != "" {
		host := k.addressed(server)
		return k.serves(host) && !slices.Contains(k.Sick, "kube-apiserver-"+host)
	}
	if k.stands || part.EndpointOf(k.cluster).Exists() {
		return k.up()
	}
	return k.serves(k.aim(c.sim))
}

// serves tells whether the API server of a host answers.
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

// Object is an object of the cluster as JSON has it.
type Object = map[string]any

func newObject(api, kind, namespace, name string) Object {
	meta := Object{"name": name}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	return Object{"apiVersion": api, "kind": kind, "metadata": meta}
}

// at gives what is under a path of keys, or nil.
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

// storeDir is where objects lie on the master.
func (k *Kube) storeDir() string { return path.Join(k.dataDir(), "member") }

// dataDir is etcd's folder.
func (k *Kube) dataDir() string { return cmp.Or(k.DataDir, k.cluster.Spec.Etcd.DataDir) }

// file is where an object lies.
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

// get gives the object that o names, or nil.
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

// named gives an object by its names.
func (k *Kube) named(api, kind, namespace, name string) Object {
	return k.get(newObject(api, kind, namespace, name))
}

// Object gives an object of the cluster, or nil.
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

// drop deletes an object; a namespace takes along what is in it.
func (k *Kube) drop(o Object) {
	k.store().RemoveAll(k.file(o))
	ns := word(o, "metadata", "name")
	for _, p := range k.store().Below(k.storeDir()) {
		if word(o, "kind") == "Namespace" && path.Base(path.Dir(p)) == ns {
			k.store().RemoveAll(p)
		}
	}
	k.tidy()
}

// tidy takes the folders away that hold nothing: a store has none.
func (k *Kube) tidy() {
	for _, p := range slices.Backward(k.store().Below(k.storeDir())) {
		if f, ok := k.store().File(p); ok && f.Mode.IsDir() && len(k.store().Below(p)) == 0 {
			k.store().RemoveAll(p)
		}
	}
}

// all gives the objects of a kind.
func (k *Kube) all(kind string) []Object {
	var out []Object
	for _, p := range k.store().Below(k.storeDir()) {
		f, ok := k.store().File(p)
		if !ok || f.Mode.IsDir() || !strings.HasPrefix(p, k.storeDir()+"/"+kind+".") {
			continue
		}
		var o Object
		if err := json.Unmarshal(f.Data, &o); err == nil {
			out = append(out, o)
		}
	}
	return out
}

// merged lays one object over another.
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
