package e2e

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/testdata/lab"
	"github.com/mensylisir/kubexm/testdata/lab/components"
)

// kinds are the ways in which three masters may have their store, beside etcd as a
// service on them: that is the walk's. KUBEXM_ETCD names one to make.
var kinds = map[string]string{
	"kubeadm":  "etcd: {type: kubeadm, snapshotCount: 20000}",
	"external": "etcd: {type: external, external: {endpoints: [\"https://${LAB_NET}.14:2379\"], caFile: etcd/ca.crt, certFile: etcd/client.crt, keyFile: etcd/client.key}}",
}

// TestClusterThreeMasters is the life of a cluster of three masters whose store is
// kubeadm's or another's: each serves by itself, and all of it goes away again.
func TestClusterThreeMasters(t *testing.T) {
	kind := os.Getenv("KUBEXM_ETCD")
	if kind == "" {
		t.Skip("KUBEXM_ETCD=kubeadm or =external runs it; the walk has etcd as a service")
	}
	if _, ok := kinds[kind]; !ok {
		t.Fatalf("KUBEXM_ETCD=%s is none of kubeadm, external", kind)
	}
	s := newMasterSite(t, kind)
	config := filepath.Join(s.dir, "config.yaml")
	if kind == "external" {
		s.startOutside(t)
	}

	s.twoAtOnce(t, "install", "--bundle", s.bundle, "--allow-unsigned", "-f", config)
	signing, public := s.signingKey(t)
	said(t, s.kubexm(t, append([]string{"install", "--bundle", s.bundle, "--allow-unsigned", "-f", config}, signing...)...), 0, "create of cluster site: done", "signed with ")
	s.onRecord(t, public)
	t.Log("\n" + s.kubectl(t, "get", "nodes", "-o", "wide"))
	said(t, s.install(t, config), 0, "0 steps ran")
	s.folder = t.TempDir() // a machine that lacks what was made and fetched here
	said(t, s.install(t, config), 0, "2 steps ran", "create of cluster site: done")
	s.folder = ""
	s.mastersServeThemselves(t, "lb.kubexm.local")
	if kind == "kubeadm" {
		if got := s.kubectl(t, "-n", "kube-system", "get", "pod", "etcd-h2", "-o", "jsonpath={.spec.containers[0].command}"); !strings.Contains(got, "--snapshot-count=20000") {
			t.Errorf("the config's snapshotCount is not in %q", got)
		}
	}
	s.mastersDoWithoutOne(t, "")

	r := s.kubexm(t, "delete", "cluster", "-f", config, "--yes")
	said(t, r, 0, "delete of cluster site: done")
	if kind == "external" {
		said(t, r, 0, "remain in the etcd at https://")
		if keys := s.outside(t, "get --prefix --keys-only /registry/namespaces/"); !strings.Contains(keys, "kube-system") {
			t.Errorf("a store that is not kubexm's was emptied: %s", keys)
		}
		s.outside(t, "del --prefix /registry/")
		s.on(t, "h4", "systemctl stop outside && rm -rf /srv/outside")
	}
	s.nothingLeft(t)
}

func newMasterSite(t *testing.T, kind string) *labSite {
	t.Helper()
	l := lab.Start(t, 4)
	l.Inside(netip.MustParsePrefix("10.204.0.0/20")) // of testdata/masters.yaml
	cache, err := components.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/masters.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := string(text)
	at := strings.Index(config, "etcd: {")
	config = config[:at] + kinds[kind] + config[at+strings.IndexByte(config[at:], '\n'):]
	s := &labSite{Lab: l, dir: t.TempDir(), cache: cache, config: l.Config(config), masters: []string{"h1", "h2", "h3"}}
	s.write(t, "config.yaml", s.config)
	s.serve(t)
	s.bundle = s.build(t, "config.yaml")
	return s
}

// What asks a cluster on a master of it. kubectl keeps a cache in the home of who calls
// it: of who comes in there, from where a deletion has to take it away.
const (
	atHome  = `for d in /home/*/.kube; do ! test -d "$d" || export HOME="${d%/.kube}"; done; `
	kubectl = "kubectl --kubeconfig /etc/kubernetes/admin.conf "
)

// master asks the cluster on a host, as its administrator there.
func (s *labSite) master(t testing.TB, host, args string) string {
	t.Helper()
	return s.on(t, host, atHome+kubectl+"--request-timeout=40s "+args)
}

// workersBalance reports whether each worker has a load balancer of its own.
func (s *labSite) workersBalance() bool {
	return strings.Contains(s.config, "loadBalancer: {internal: ")
}

// mastersServeThemselves: without a load balancer the control plane's name means
// each master itself, on the host and in the pods that have its hosts file. For the
// workers it means the first, or their own load balancer.
func (s *labSite) mastersServeThemselves(t testing.TB, name string) {
	t.Helper()
	for _, h := range s.masters {
		address := s.address(t, h)
		if got := s.on(t, h, "getent ahostsv4 "+name+" | head -1"); !strings.HasPrefix(got, address+" ") {
			t.Errorf("%s reaches API servers at %s", h, got)
		}
		uid := s.master(t, h, "-n kube-system get pods -l k8s-app=kube-proxy --field-selector spec.nodeName="+h+" -o jsonpath={.items[0].metadata.uid}")
		s.on(t, h, "grep -q '^"+address+" "+name+"' /var/lib/kubelet/pods/"+uid+"/etc-hosts")
	}
	last, want := s.Hosts[len(s.Hosts)-1].Name, s.address(t, s.masters[0])
	if s.workersBalance() {
		want = "127.0.0.1"
		s.on(t, last, readyHere)
		s.connects(t, last, "kube-proxy")
	}
	if got := s.on(t, last, "getent ahostsv4 "+name+" | head -1"); !strings.HasPrefix(got, want+" ") {
		t.Errorf("the worker %s reaches API servers at %s", last, got)
	}
}

// etcdctl asks the member on a host, with what a master looks after it with.
func (s *labSite) etcdctl(host string) string {
	address := host
	if h, err := s.Host(host); err == nil {
		address = h.Address
	}
	return "etcdctl --cacert /etc/etcd/pki/ca.crt --cert /etc/etcd/pki/healthcheck-client.crt --key /etc/etcd/pki/healthcheck-client.key --endpoints https://" + address + ":2379"
}

// storeIsTuned asks a member for what testdata/walk.yaml says.
func (s *labSite) storeIsTuned(t testing.TB) {
	t.Helper()
	on := s.masters[1]
	running := s.on(t, on, "tr '\\0' ' ' < /proc/$(systemctl show -P MainPID etcd)/cmdline; stat -c ' %a' /srv/etcd /srv/etcd/member")
	for _, want := range []string{"--heartbeat-interval=200 ", "--metrics=extensive ", "--snapshot-count=20000 ", "--data-dir=/srv/etcd ", " 700"} {
		if !strings.Contains(running, want) {
			t.Errorf("%q is not in %q", want, running)
		}
	}
	// Nobody comes in without a certificate.
	if out := s.on(t, on, "etcdctl --endpoints https://"+s.address(t, on)+":2379 --cacert /etc/etcd/pki/ca.crt --command-timeout=5s endpoint health 2>&1 || true"); !strings.Contains(out, "unhealthy") {
		t.Errorf("a client without a certificate is told %q", out)
	}
}

// storeDoesWithoutOne kills a member and writes through every API server.
func (s *labSite) storeDoesWithoutOne(t testing.TB) {
	t.Helper()
	first, second := s.masters[0], s.masters[1]
	s.on(t, first, "systemctl kill -s KILL etcd; systemctl stop etcd")
	// It may have led: what is written before the others have a new leader may time out.
	s.eventually(t, second, s.etcdctl(second)+" endpoint health")
	for i, h := range s.masters {
		s.master(t, h, fmt.Sprintf("create configmap without-a-member-%d --from-literal=written=yes", i+1))
	}
	s.on(t, first, "systemctl start etcd")
	s.eventually(t, first, s.etcdctl(first)+" endpoint health")
}

// aLostDiskIsReplaced takes the data of a member, and has an install make another in
// its place, from a machine that has the bundle and the config alone.
func (s *labSite) aLostDiskIsReplaced(t testing.TB, config string) {
	t.Helper()
	first, second := s.masters[0], s.masters[1]
	list := func() string { return s.on(t, first, s.etcdctl(first)+" member list") }
	before := list()
	s.on(t, second, "systemctl stop etcd; rm -rf /srv/etcd")
	s.folder = t.TempDir()
	r := s.install(t, config)
	s.folder = ""
	said(t, r, 0, "create of cluster site: done")
	after := list()
	t.Logf("members before:\n%s\nafter:\n%s", before, after)
	if strings.Count(after, "started") != 3 || after == before {
		t.Errorf("the members are\n%s", after)
	}
	s.eventually(t, second, s.etcdctl(second)+" endpoint health --cluster")
	s.on(t, second, "! test -e /etc/etcd/join.env && test \"$(stat -c %a /srv/etcd)\" = 700")
	said(t, s.install(t, config), 0, "0 steps ran")
}

// mastersDoWithoutOne stops all of the first master, which the others joined, and the
// services of it that kubexm runs beside the kubelet.
func (s *labSite) mastersDoWithoutOne(t testing.TB, services string) {
	t.Helper()
	first, others := s.masters[0], s.masters[1:]
	s.on(t, first, "systemctl stop kubelet"+services+"; crictl ps -q | xargs crictl stop --timeout 0 >/dev/null")
	written := ""
	for _, h := range others {
		name := "without-" + first + "-on-" + h
		s.eventually(t, h, atHome+kubectl+"--request-timeout=20s create configmap "+name+" --from-literal=written=yes")
		t.Log("\n" + s.master(t, h, "get nodes"))
		written += " " + name
	}
	if s.workersBalance() {
		s.eventually(t, s.Hosts[len(s.Hosts)-1].Name, readyHere)
	}
	s.on(t, first, "systemctl start kubelet"+services)
	s.eventually(t, first, atHome+kubectl+"--request-timeout=10s get configmap"+written)
}

// eventually runs a script on a host until it ends well.
func (s *labSite) eventually(t testing.TB, host, script string) {
	t.Helper()
	s.within(t, 2*time.Minute, host, script)
}

func (s *labSite) within(t testing.TB, limit time.Duration, host, script string) {
	t.Helper()
	h, err := s.Host(host)
	if err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(limit); ; time.Sleep(time.Second) {
		out, err := s.SSH(t.Context(), h, lab.RootUser, script).CombinedOutput()
		if err == nil {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("%s on %s: %s (%v)", script, host, out, err)
		}
	}
}

// startOutside brings up an etcd that is not kubexm's, on a host that is no master,
// with keys that the config's folder holds the client's of.
func (s *labSite) startOutside(t testing.TB) {
	t.Helper()
	rows, err := components.Table("")
	if err != nil {
		t.Fatal(err)
	}
	c, err := components.Find(rows, "etcd")
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.Host("h4")
	if err != nil {
		t.Fatal(err)
	}
	s.on(t, "h4", "mkdir -p /srv/outside")
	for _, name := range []string{"etcd", "etcdctl"} {
		program, err := os.Open(filepath.Join(c.Dir(s.cache), name))
		if err != nil {
			t.Fatal(err)
		}
		defer program.Close()
		put := s.SSH(t.Context(), h, lab.RootUser, "cat > /srv/outside/"+name+" && chmod 755 /srv/outside/"+name)
		put.Stdin = program
		if out, err := put.CombinedOutput(); err != nil {
			t.Fatalf("%s (%v)", out, err)
		}
	}
	s.on(t, "h4", `cd /srv/outside
key() { openssl ecparam -name prime256v1 -genkey -noout -out $1.key; }
key ca; openssl req -x509 -new -key ca.key -days 30 -subj /CN=outside -out ca.crt
for n in server client; do key $n; openssl req -new -key $n.key -subj /CN=$n | openssl x509 -req -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 \
  -extfile <(printf 'subjectAltName=IP:`+h.Address+`,IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n') -out $n.crt 2>/dev/null; done
systemd-run --unit outside --working-directory=/srv/outside /srv/outside/etcd --data-dir /srv/outside/data --listen-client-urls https://`+h.Address+`:2379,https://127.0.0.1:2379 --advertise-client-urls https://`+h.Address+`:2379 \
  --client-cert-auth --trusted-ca-file ca.crt --cert-file server.crt --key-file server.key --listen-peer-urls http://127.0.0.1:2380 2>&1`)
	if err := os.MkdirAll(filepath.Join(s.dir, "etcd"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ca.crt", "client.crt", "client.key"} {
		s.write(t, filepath.Join("etcd", name), s.on(t, "h4", "cat /srv/outside/"+name)+"\n")
	}
	s.eventually(t, "h4", outsideCtl+"endpoint health")
}

const outsideCtl = "cd /srv/outside && ./etcdctl --endpoints https://127.0.0.1:2379 --cacert ca.crt --cert client.crt --key client.key "

func (s *labSite) outside(t testing.TB, command string) string {
	t.Helper()
	return s.on(t, "h4", outsideCtl+command)
}
