package etcd_test

import (
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/etcd"
	"github.com/mensylisir/kubexm/steps/steptest"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// three is a config of three masters that are the store's hosts too; what follows
// is the rest of spec.
const three = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: m1, address: 192.0.2.11, internalAddress: 10.0.0.11}
    - {name: m2, address: 192.0.2.12, internalAddress: 10.0.0.12}
    - {name: m3, address: 192.0.2.13, internalAddress: 10.0.0.13}
  ssh: {user: root, password: secret}
  roleGroups: {master: [m1, m2, m3], worker: [m1], registry: [m1]}
  kubernetes: {version: v1.32.2}
`

const (
	plain      = "  etcd: {type: kubexm}\n  network: {plugin: flannel}\n"
	everything = `  etcd: {type: kubexm, dataDir: /data/etcd, heartbeatInterval: 300, electionTimeout: 3000, snapshotCount: 20000, autoCompactionRetention: 0,
    metrics: extensive, quotaBackendBytes: 8589934592, maxRequestBytes: 2097152, maxSnapshots: 3, maxWals: 0, logLevel: warn,
    extraArgs: {snapshot-count: 30000, listen-metrics-urls: 'http://10.0.0.11:2381', pre-vote: true, experimental-note: '100% of "$x" \ more'}}
  network: {plugin: flannel}
`
	six = "  etcd: {type: kubexm}\n  network: {plugin: flannel, kubePodsCIDR: 'fd00:10::/96', kubeServiceCIDR: 'fd00:20::/112'}\n"
)

func TestInstallKeepsItsLaws(t *testing.T) {
	c := steptest.Cluster(t, three+plain)
	for name, before := range map[string]func(*conntest.Sim){
		"bare": nil,
		"with an etcd of the distribution's": func(s *conntest.Sim) {
			s.AddUnit("etcd.service", "[Service]\nExecStart=/usr/bin/etcd\n[Install]\nWantedBy=multi-user.target\n", true, true)
			s.AddFile("/etc/etcd/etcd.conf", "theirs", 0o644)
			s.AddFile("/etc/etcd/pki/ca.crt", "theirs", 0o600)
			s.AddFile("/usr/local/bin/etcdctl", "theirs", 0o700)
			s.AddDir("/var/lib/etcd", 0o755)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := func(s *conntest.Sim) {
				if before != nil {
					before(s)
				}
				s.HandleProgram("etcdctl", func(connector.Cmd, []byte) (connector.Result, bool) { return connector.Result{Exit: 1}, true })
			}
			steptest.Ensure(t, steptest.Case{Cluster: c, Before: asked, Every: 9, Workdir: t.TempDir()}, etcd.Install(c), etcd.Uninstall(c, false))
		})
	}
}

func TestKeysOfMastersKeepTheirLaws(t *testing.T) {
	c := steptest.Cluster(t, three+plain)
	steptest.Ensure(t, steptest.Case{Cluster: c, Workdir: t.TempDir()}, etcd.InstallClientFiles(c), etcd.RemoveClientFiles(c))
	dir := t.TempDir()
	for _, f := range []string{"ca", "cert", "key"} {
		if err := os.WriteFile(filepath.Join(dir, f), []byte("the "+f+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ext := steptest.Cluster(t, three+"  etcd: {type: external, external: {endpoints: ['https://192.0.2.41:2379'], caFile: "+dir+"/ca, certFile: "+dir+"/cert, keyFile: "+dir+"/key}}\n  network: {plugin: flannel}\n")
	kase := steptest.Case{Cluster: ext}
	steptest.Ensure(t, kase, etcd.InstallClientFiles(ext), etcd.RemoveClientFiles(ext))
	s, give := kase.Sim(t), etcd.InstallClientFiles(ext)
	if err := give.Run(t.Context(), kase.NewHost(t, s, give)); err != nil {
		t.Fatal(err)
	}
	for name, path := range paths(ext) {
		f, _ := s.File(path)
		if mode := map[string]os.FileMode{"ca": 0o644, "cert": 0o644, "key": 0o600}[name]; string(f.Data) != "the "+name+"\n" || f.Mode != mode {
			t.Errorf("%s is %q, %v", path, f.Data, f.Mode)
		}
	}
}

func paths(c *manifest.Cluster) map[string]string {
	ca, cert, key := etcd.ClientFiles(c)
	return map[string]string{"ca": ca, "cert": cert, "key": key}
}

// TestClientFilesOfMasters: no file where the store has none.
func TestClientFilesOfMasters(t *testing.T) {
	const dir = "/etc/kubernetes/etcd/"
	for text, want := range map[string]map[string]string{
		"{type: kubexm}":  {"ca": dir + "ca.crt", "cert": dir + "client.crt", "key": dir + "client.key"},
		"{type: kubeadm}": {"ca": "", "cert": "", "key": ""},
		"{type: external, external: {endpoints: ['http://192.0.2.41:2379']}}":                                         {"ca": "", "cert": "", "key": ""},
		"{type: external, external: {endpoints: ['https://192.0.2.41:2379'], caFile: /a}}":                            {"ca": dir + "ca.crt", "cert": "", "key": ""},
		"{type: external, external: {endpoints: ['https://192.0.2.41:2379'], caFile: /a, certFile: /b, keyFile: /c}}": {"ca": dir + "ca.crt", "cert": dir + "client.crt", "key": dir + "client.key"},
	} {
		c := steptest.Cluster(t, three+"  etcd: "+text+"\n  network: {plugin: flannel}\n")
		if d := cmp.Diff(want, paths(c)); d != "" {
			t.Errorf("%s (-want +got):\n%s", text, d)
		}
		if etcd.NeedsClientFiles(c) != (want["ca"] != "") {
			t.Errorf("%s: needs keys: %t", text, etcd.NeedsClientFiles(c))
		}
	}
}

// install runs it on a host, and gives the host.
func install(t *testing.T, c *manifest.Cluster, host, workdir string) *conntest.Sim {
	t.Helper()
	kase := steptest.Case{Cluster: c, Workdir: workdir, Host: c.Spec.Hosts[slices.IndexFunc(c.Spec.Hosts, func(h manifest.Host) bool { return h.Name == host })]}
	s, step := kase.Sim(t), etcd.Install(c)
	if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestUnits(t *testing.T) {
	for name, rest := range map[string]string{"plain": plain, "everything": everything, "ipv6": six} {
		config := three + rest
		if name == "ipv6" {
			config = strings.Replace(config, "v1.32.2}", "v1.32.2, nodeCidrMaskSizeIPv6: 112}", 1)
			for i := range 3 {
				config = strings.Replace(config, fmt.Sprintf("internalAddress: 10.0.0.1%d", i+1), fmt.Sprintf("internalAddress: 'fd00::1%d'", i+1), 1)
			}
		}
		s := install(t, steptest.Cluster(t, config), "m2", t.TempDir())
		steptest.Golden(t, *update, name+".service", s.Read("/etc/systemd/system/etcd.service"))
	}
}

// TestMembersTrustEachOther: what a member serves with is good for every name that
// it has, and its peers and the API servers are clients of one CA.
func TestMembersTrustEachOther(t *testing.T) {
	c, work := steptest.Cluster(t, three+plain), t.TempDir()
	one, two := install(t, c, "m1", work), install(t, c, "m2", work)
	if one.Read("/etc/etcd/pki/ca.crt") != two.Read("/etc/etcd/pki/ca.crt") {
		t.Fatal("two members have two CAs")
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(one.Read("/etc/etcd/pki/ca.crt")))
	check := func(s *conntest.Sim, dir, name string, use x509.ExtKeyUsage, names ...string) {
		t.Helper()
		p, err := tls.X509KeyPair([]byte(s.Read(dir+name+".crt")), []byte(s.Read(dir+name+".key")))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, n := range append(names, "") {
			if _, err := p.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: n, KeyUsages: []x509.ExtKeyUsage{use}}); err != nil {
				t.Errorf("%s for %q: %v", name, n, err)
			}
		}
		if f, _ := s.File(dir + name + ".key"); f.Mode != 0o600 {
			t.Errorf("%s.key has mode %v", name, f.Mode)
		}
	}
	const dir = "/etc/etcd/pki/"
	check(one, dir, "server", x509.ExtKeyUsageServerAuth, "m1", "m1.cluster.local", "10.0.0.11", "192.0.2.11", "127.0.0.1", "localhost")
	check(two, dir, "peer", x509.ExtKeyUsageServerAuth, "m2", "10.0.0.12")
	check(two, dir, "peer", x509.ExtKeyUsageClientAuth)
	check(one, dir, "healthcheck-client", x509.ExtKeyUsageClientAuth)
	kase := steptest.Case{Cluster: c, Workdir: work}
	give := etcd.InstallClientFiles(c)
	if err := give.Run(t.Context(), kase.NewHost(t, one, give)); err != nil {
		t.Fatal(err)
	}
	check(one, "/etc/kubernetes/etcd/", "client", x509.ExtKeyUsageClientAuth)
	for _, name := range []string{"ca.crt", "ca.key", "server-m1.key", "peer-m2.crt", "apiserver-etcd-client.crt", "healthcheck-client.key"} {
		if _, err := os.Stat(filepath.Join(work, "certs", "etcd", name)); err != nil {
			t.Errorf("the workdir: %v", err)
		}
	}
}

// TestAnotherWorkdirIsRefused: a member with data keeps the keys that its peers
// know, whatever a machine without them would make.
func TestAnotherWorkdirIsRefused(t *testing.T) {
	c, work := steptest.Cluster(t, three+plain), t.TempDir()
	s := install(t, c, "m1", work)
	s.AddFile("/var/lib/etcd/member/wal/0.wal", "data", 0o600)
	before := s.Snapshot()
	other := steptest.Case{Cluster: c, Workdir: t.TempDir()}
	step := etcd.Install(c)
	_, err := step.Precheck(t.Context(), other.NewHost(t, s, step))
	if err == nil || !strings.Contains(strings.Join(steps.Advice(err), " "), "certs/etcd away and run the command again: kubexm then copies the CA from m1") {
		t.Errorf("%v, %q", err, steps.Advice(err))
	}
	bare := s.Read("/etc/etcd/pki/ca.key")
	s.RemoveAll("/etc/etcd/pki/ca.key") // an older kubexm kept none
	_, err = step.Precheck(t.Context(), other.NewHost(t, s, step))
	if err == nil || !strings.Contains(strings.Join(steps.Advice(err), " "), "certs/etcd from the workdir host that created the cluster") {
		t.Errorf("%v, %q", err, steps.Advice(err))
	}
	s.AddFile("/etc/etcd/pki/ca.key", bare, 0o600)
	if err := step.Run(t.Context(), other.NewHost(t, s, step)); err == nil {
		t.Error("it was given new keys")
	}
	if d := conntest.Diff(before, s.Snapshot()); d != "" {
		t.Errorf("refused, and changed:\n%s", d)
	}
	found := func(workdir string, there func(*conntest.Sim)) int {
		ca := s.Read("/etc/etcd/pki/ca.crt")
		kase := steptest.Case{Cluster: c, Workdir: workdir, Before: func(s *conntest.Sim) {
			s.AddFile("/etc/etcd/pki/ca.crt", ca, 0o644)
			s.AddFile("/var/lib/etcd/member/wal/0.wal", "data", 0o600)
			there(s)
		}}
		return len(steptest.Check(t, kase, etcd.CheckKeys(c)))
	}
	asItIs := func(*conntest.Sim) {}
	for name, got := range map[string][2]int{
		"another machine":          {found(other.Workdir, asItIs), 1},
		"one that never made any":  {found(t.TempDir(), asItIs), 1},
		"the one that made it":     {found(work, asItIs), 0},
		"a member without data":    {found(t.TempDir(), func(s *conntest.Sim) { s.RemoveAll("/var/lib/etcd/member") }), 0},
		"somebody's data, no keys": {found(t.TempDir(), func(s *conntest.Sim) { s.RemoveAll("/etc/etcd") }), 0},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %d findings, want %d", name, got[0], got[1])
		}
	}
	same := steptest.Case{Cluster: c, Workdir: work}
	if v, err := step.Precheck(t.Context(), same.NewHost(t, s, step)); err != nil || v != steps.Done {
		t.Errorf("from the machine that made it: %v, %v", v, err)
	}
	// Without data nobody depends on what is there.
	s.HandleProgram("etcdctl", func(connector.Cmd, []byte) (connector.Result, bool) { return connector.Result{Exit: 1}, true })
	s.RemoveAll("/var/lib/etcd/member")
	if err := step.Run(t.Context(), other.NewHost(t, s, step)); err != nil {
		t.Error(err)
	}
}

// TestWaitHealthy: it waits for a member that needs a moment, and says what one
// that never answers said last.
func TestWaitHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := steptest.Cluster(t, three+plain)
		kase := steptest.Case{Cluster: c}
		step := etcd.WaitHealthy(c)
		if !step.Meta().ReadOnly {
			t.Error("a wait changes nothing")
		}
		for _, answers := range []int{1, 5, 1 << 30} {
			s, asked := kase.Sim(t), 0
			s.HandleProgram("etcdctl", func(cmd connector.Cmd, _ []byte) (connector.Result, bool) {
				if asked++; asked < answers {
					return connector.Result{Exit: 1, Stderr: []byte("10.0.0.11:2379 is unhealthy: context deadline exceeded\n")}, true
				}
				if !slices.Contains(cmd.Argv, "--endpoints=https://10.0.0.11:2379") || !slices.Contains(cmd.Argv, "--cacert=/etc/etcd/pki/ca.crt") {
					t.Errorf("%q", cmd.Argv)
				}
				return connector.Result{}, true
			})
			v, err := step.Precheck(t.Context(), kase.NewHost(t, s, step))
			if err != nil || (v == steps.Done) != (answers == 1) {
				t.Errorf("%d: %v, %v", answers, v, err)
			}
			err = step.Run(t.Context(), kase.NewHost(t, s, step))
			if never := answers > 100; never != (err != nil) {
				t.Errorf("%d: %v", answers, err)
			}
			if err != nil && (!strings.Contains(err.Error(), "is unhealthy") || !strings.Contains(strings.Join(steps.Advice(err), " "), "journalctl -u etcd.service")) {
				t.Errorf("%v, %q", err, steps.Advice(err))
			}
		}
	})
}

// trio are three members that run, with a setting that is about to change.
type trio struct {
	t       *testing.T
	work    string
	sims    map[string]*conntest.Sim
	mu      sync.Mutex
	order   []string        // who was restarted
	awaited string          // who was restarted and has not answered yet
	dead    map[string]bool // who does not start any more
	bad     bool            // the setting is one that no member starts with
}

func newTrio(t *testing.T) *trio {
	x := &trio{t: t, work: t.TempDir(), sims: map[string]*conntest.Sim{}, dead: map[string]bool{}}
	for _, name := range []string{"m1", "m2", "m3"} {
		s := install(t, steptest.Cluster(t, three+plain), name, x.work)
		s.HandleProgram("etcdctl", func(c connector.Cmd, _ []byte) (connector.Result, bool) {
			time.Sleep(time.Second) // each has time to ask before another is restarted
			x.mu.Lock()
			defer x.mu.Unlock()
			for _, other := range []string{"m1", "m2", "m3"} {
				if x.dead[other] && (other == name || slices.Contains(c.Argv, "--cluster")) {
					return connector.Result{Exit: 1, Stderr: []byte(other + " is unhealthy\n")}, true
				}
			}
			if x.awaited == name {
				x.awaited = ""
			}
			return connector.Result{}, true
		})
		s.Handle(func(c connector.Cmd) bool { return c.Verb == connector.VerbUnitRestart }, func(connector.Cmd, []byte) (connector.Result, bool) {
			x.mu.Lock()
			defer x.mu.Unlock()
			if x.awaited != "" {
				t.Errorf("%s is restarted before %s has answered", name, x.awaited)
			}
			x.order, x.awaited = append(x.order, name), name
			x.dead[name] = x.bad
			return connector.Result{}, false
		})
		x.sims[name] = s
	}
	return x
}

// change brings another setting to all members at once.
func (x *trio) change() map[string]error {
	x.t.Helper()
	c := steptest.Cluster(x.t, three+strings.Replace(plain, "type: kubexm", "type: kubexm, heartbeatInterval: 300", 1))
	errs := map[string]error{}
	var wg sync.WaitGroup
	for _, h := range c.Spec.Hosts {
		step := etcd.Install(c)
		host := steptest.Case{Cluster: c, Host: h, Workdir: x.work}.NewHost(x.t, x.sims[h.Name], step)
		wg.Go(func() {
			err := step.Run(x.t.Context(), host)
			x.mu.Lock()
			defer x.mu.Unlock()
			errs[h.Name] = err
		})
	}
	wg.Wait()
	return errs
}

// TestMembersAreRestartedOneByOne, and all of them are.
func TestMembersAreRestartedOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTrio(t)
		for host, err := range x.change() {
			if err != nil || !strings.Contains(x.sims[host].Unit("etcd.service").Ran, "heartbeat-interval=300") {
				t.Errorf("%s: %v", host, err)
			}
		}
		if slices.Sort(x.order); !slices.Equal(x.order, []string{"m1", "m2", "m3"}) {
			t.Errorf("restarted were %q", x.order)
		}
	})
}

// TestABadSettingStopsAtTheFirst: the other members go on with what they had, until
// it is mended.
func TestABadSettingStopsAtTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTrio(t)
		x.bad = true
		for host, err := range x.change() {
			if err == nil {
				t.Errorf("%s: it was restarted well", host)
			}
		}
		if len(x.order) != 1 {
			t.Fatalf("restarted were %q", x.order)
		}
		x.bad, x.dead, x.awaited = false, map[string]bool{}, ""
		for host, err := range x.change() {
			if err != nil || !strings.Contains(x.sims[host].Unit("etcd.service").Ran, "heartbeat-interval=300") {
				t.Errorf("%s, mended: %v", host, err)
			}
		}
	})
}

// TestAMemberThatExits is not waited for: its last words are in the error.
func TestAMemberThatExits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := steptest.Cluster(t, three+plain)
		kase := steptest.Case{Cluster: c}
		s, step, began := kase.Sim(t), etcd.WaitHealthy(c), time.Now()
		s.HandleProgram("etcdctl", func(connector.Cmd, []byte) (connector.Result, bool) {
			return connector.Result{Exit: 1, Stderr: []byte("connection refused\n")}, true
		})
		s.Handle(func(c connector.Cmd) bool { return c.Verb == connector.VerbUnitShow }, func(connector.Cmd, []byte) (connector.Result, bool) {
			return connector.Result{Stdout: fmt.Appendf(nil, "Id=etcd.service\nLoadState=loaded\nActiveState=activating\nSubState=auto-restart\nNRestarts=%d\n", time.Since(began)/(5*time.Second))}, true
		})
		s.Handle(func(c connector.Cmd) bool { return c.Verb == connector.VerbUnitJournal }, func(connector.Cmd, []byte) (connector.Result, bool) {
			return connector.Result{Stdout: []byte("etcd[7]: flag provided but not defined: -no-such-flag\n")}, true
		})
		err := step.Run(t.Context(), kase.NewHost(t, s, step))
		if err == nil || !strings.Contains(err.Error(), "etcd exits right after its start") || !strings.Contains(err.Error(), "no-such-flag") {
			t.Errorf("%v", err)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("to see that took %s", took)
		}
	})
}
