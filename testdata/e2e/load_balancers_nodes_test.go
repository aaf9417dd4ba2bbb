package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/testdata/lab/drivers"
)

// nodeBalancer is a load balancer that kubexm runs on each worker.
type nodeBalancer struct {
	line   string // of the config
	reload string // the signal by which its first process reads its config again
	checks bool   // it requests /readyz of API servers
}

// nodeBalancers are those by their type.
var nodeBalancers = map[string]nodeBalancer{
	"haproxy": {"loadBalancer: {internal: {type: haproxy}}", "USR2", true},
	"nginx":   {"loadBalancer: {internal: {type: nginx}}", "HUP", false},
}

// TestLoadBalancersOnNodes is the life of a cluster of three masters whose two workers reach
// the API servers through a load balancer of their own. KUBEXM_BALANCER names its type.
func TestLoadBalancersOnNodes(t *testing.T) {
	kind := os.Getenv("KUBEXM_BALANCER")
	if kind == "" {
		t.Skip("KUBEXM_BALANCER=haproxy or =nginx runs it")
	}
	b, ok := nodeBalancers[kind]
	if !ok {
		t.Fatalf("KUBEXM_BALANCER=%s is none of haproxy, nginx", kind)
	}
	text, err := os.ReadFile("testdata/load-balancers-workers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, config := newSiteOf(t, 5, strings.Replace(string(text), nodeBalancers["haproxy"].line, b.line, 1))
	s.masters = []string{"h1", "h2", "h3"}
	before := s.inventories(t)

	said(t, s.install(t, config), 0, "create of cluster site: done")
	said(t, s.install(t, config), 0, "0 steps ran")
	s.smoke(t)
	said(t, s.kubexm(t, "get", "endpoint", "-f", config, "-o", "json"), 0, `"workers"`, `"host": "h4"`, `"host": "h5"`, `"state": "running"`, `"state": "ready"`)
	s.workersUseTheirOwn(t)

	s.survivesOnNodes(t, b)
	s.aWorkerBoots(t, "h5")
	s.smoke(t)
	said(t, s.install(t, config), 0, "0 steps ran")

	said(t, s.kubexm(t, "delete", "cluster", "-f", config, "--yes"), 0, "delete of cluster site: done")
	s.asBefore(t, before)
}

// readyHere succeeds on a master whose API server is ready, and on a worker whose load balancer
// reaches one that is.
const readyHere = "curl -sk --max-time 5 https://127.0.0.1:6443/readyz | grep -q ok"

// workersUseTheirOwn: the endpoint's name resolves to the worker itself on a worker, and to the
// master itself on a master. Clients on a worker use that name.
func (s *labSite) workersUseTheirOwn(t *testing.T) {
	t.Helper()
	const name = "api.site.example"
	for _, h := range s.Hosts {
		own := h.Address
		if h.Name == "h4" || h.Name == "h5" {
			own = "127.0.0.1"
			s.on(t, h.Name, "grep -q 'server: https://"+name+":6443' /etc/kubernetes/kubelet.conf && "+readyHere)
			s.connects(t, h.Name, "kube-proxy")
		}
		if got := s.on(t, h.Name, "getent ahostsv4 "+name+" | head -1"); !strings.HasPrefix(got, own+" ") {
			t.Errorf("%s reaches API servers at %q, not at %s", h.Name, got, own)
		}
	}
}

// connects waits until a program on a worker has a connection to the worker's load balancer.
func (s *labSite) connects(t testing.TB, worker, program string) {
	t.Helper()
	s.eventually(t, worker, "ss -Htnp state established dst 127.0.0.1:6443 | grep -qF '\""+program+"\"'")
}

// balancerOn gives the container of a worker's load balancer, and its first process by the
// host's numbers.
func (s *labSite) balancerOn(t *testing.T, worker string) (container, process string) {
	t.Helper()
	out := s.on(t, worker, `set -e
pod=$(crictl pods -q --state ready --name '^kubexm-balancer')
id=$(crictl ps -q --pod "$pod")
echo "$id $(crictl inspect -o go-template --template '{{.info.pid}}' "$id")"`)
	container, process, _ = strings.Cut(out, " ")
	if container == "" || process == "" || strings.ContainsAny(process, " \n") {
		t.Fatalf("%s does not run one load balancer, but %q", worker, out)
	}
	return container, process
}

// survivesOnNodes has clients at work on a worker while its load balancer reloads and masters
// fail, and holds what they noticed to limits.
func (s *labSite) survivesOnNodes(t *testing.T, b nodeBalancer) {
	t.Helper()
	const worker, stopped, first = "h4", "h3", "h1"
	h, err := s.Host(worker)
	if err != nil {
		t.Fatal(err)
	}
	d := s.drives(t, "h5", func(c *drivers.Config) {
		c.Dial = drivers.Within(s.Namespace(h)).Dial
		c.Addresses, c.Nodes = []string{"127.0.0.1:6443"}, []string{s.address(t, "h4"), s.address(t, "h5")}
		c.Health, c.StockWatch = drivers.Health{ReadIdle: time.Second, Ping: time.Second}, true
	})
	limits := map[string]drivers.Limit{}
	phase := func(name string, limit drivers.Limit) {
		t.Helper()
		limits[name] = limit
		d.Mark(name)
	}
	// choose gives the limit for a load balancer that checks API servers, or for the other one.
	choose := func(checked, unchecked drivers.Limit) drivers.Limit {
		if b.checks {
			return checked
		}
		return unchecked
	}
	const some = drivers.Unlimited
	quiet := drivers.Limit{Gap: 5 * time.Second, Watch: 10 * time.Second, Failed: some, NewFailed: some}
	short := drivers.Limit{Gap: 2 * time.Second, Watch: 5 * time.Second, Failed: some, NewFailed: some}
	// What is only measured loses no write all the same.
	measured := drivers.Limit{Gap: time.Hour, Watch: time.Hour, Failed: some, NewFailed: some}
	time.Sleep(20 * time.Second) // the baseline

	const reloaded = "load balancer reloaded"
	phase(reloaded, drivers.Limit{Gap: time.Second, Watch: time.Second})
	s.reloads(t, worker, b.reload)

	const inPlace, away = "/etc/kubernetes/manifests/kube-apiserver.yaml", "/etc/kubernetes/kube-apiserver.yaml"
	phase("API server stopped gracefully", drivers.Limit{Gap: time.Second, Watch: 5 * time.Second})
	s.on(t, stopped, "mv "+inPlace+" "+away)
	s.eventually(t, stopped, "test -z \"$(crictl ps -q --name kube-apiserver)\"")
	time.Sleep(5 * time.Second)
	phase("API server starts", choose(short, quiet))
	s.on(t, stopped, "mv "+away+" "+inPlace)
	s.eventually(t, stopped, readyHere)
	time.Sleep(15 * time.Second)

	// Without etcd an API server listens and fails everything.
	phase("API server listens and is not ready", choose(short, measured))
	s.on(t, stopped, `nft -f - <<'END'
table inet away {
	chain out {
		type filter hook output priority 0
		oifname "lo" tcp dport 2379 reject with tcp reset
	}
}
END`)
	time.Sleep(unreadyTime)
	phase("the same, after "+unreadyTime.String(), choose(drivers.Limit{Gap: time.Second, Watch: 5 * time.Second}, measured))
	time.Sleep(10 * time.Second)
	said(t, s.kubexm(t, "get", "endpoint", "-f", filepath.Join(s.dir, "config.yaml")), 1, map[bool]string{true: "running, down: " + stopped, false: " not ready "}[b.checks])
	phase("it is ready again", choose(quiet, measured))
	s.on(t, stopped, "nft delete table inet away")
	s.eventually(t, stopped, readyHere)
	time.Sleep(15 * time.Second)

	// The master may have etcd's leader: no write succeeds until there is another one.
	phase("first master loses power", drivers.Limit{Gap: 2 * electionTimeout, Watch: 5 * time.Second, Failed: some, NewFailed: some})
	cut := s.losesAMaster(t, first, "h2")
	stockWatchIsBack(t, d, "first master loses power", cut)
	phase("it boots again", choose(short, quiet))
	s.bootsMaster(t, first)

	report, err := d.Stop(t.Context())
	if err != nil {
		t.Error(err)
	}
	t.Logf("\n%s", report)
	for name, limit := range limits {
		if err := report.Check(name, limit); err != nil {
			t.Error(err)
		}
	}
	if p, err := report.Phase(reloaded); err != nil || p.Watch.Breaks > 0 {
		t.Errorf("reloads broke the watch: %+v, %v", p, err)
	}
}

// reloads has a worker's load balancer read its config again three times. New processes take
// over each time, and the container is the same.
func (s *labSite) reloads(t *testing.T, worker, signal string) {
	t.Helper()
	container, process := s.balancerOn(t, worker)
	newest := func() string { return s.on(t, worker, "pgrep -n -P "+process) }
	for range 3 {
		was := newest()
		s.on(t, worker, "kill -s "+signal+" "+process)
		time.Sleep(3 * time.Second)
		if is := newest(); is == was {
			t.Errorf("the signal %s had no effect: process %s works on", signal, was)
		}
	}
	if c, p := s.balancerOn(t, worker); c != container || p != process {
		t.Errorf("a reload replaced container %s, process %s by %s, %s", container, process, c, p)
	}
}

// electionTimeout is the default of spec.etcd.electionTimeout. A member without a leader waits for
// one to two of it before it stands for election (raft's randomized timeout); requests that
// waited need a moment more.
const electionTimeout = 5*time.Second + time.Second

// readiness tells since when workers are ready, and not ready.
const readiness = `get nodes h4 h5 -o jsonpath='{range .items[*]}{.metadata.name} {.status.conditions[?(@.type=="Ready")].status} since ` +
	`{.status.conditions[?(@.type=="Ready")].lastTransitionTime}{"\n"}{end}'`

// losesAMaster cuts the power of a master until the cluster has noticed. Workers report to
// other API servers all the time: those that did not would be unknown as well by then.
func (s *labSite) losesAMaster(t *testing.T, master, other string) (cut time.Time) {
	t.Helper()
	before := s.master(t, other, readiness)
	if strings.Count(before, " True since ") != 2 {
		t.Fatalf("workers are not ready:\n%s", before)
	}
	h, err := s.Host(master)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Cut(h); err != nil {
		t.Fatal(err)
	}
	cut = time.Now()
	said(t, s.kubexm(t, "get", "endpoint", "-f", filepath.Join(s.dir, "config.yaml")), 1, master, "unknown")
	s.within(t, 3*time.Minute, other, atHome+kubectl+"--request-timeout=10s get node "+master+` -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}' | grep -qx Unknown`)
	time.Sleep(15 * time.Second) // a kubelet renews its lease every ten seconds
	for _, worker := range []string{"h4", "h5"} {
		s.connects(t, worker, "kubelet") // until now it may have kept the connection by which it joined
	}
	if after := s.master(t, other, readiness); after != before {
		t.Errorf("before %s lost its power:\n%s\nafter:\n%s", master, before, after)
	}
	return cut
}

// bootsMaster boots a master, and returns when every API server is in use again.
func (s *labSite) bootsMaster(t *testing.T, master string) {
	t.Helper()
	h, err := s.Host(master)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := s.Boot(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	s.within(t, 3*time.Minute, master, readyHere)
	for wait := patient(2 * time.Minute); ; time.Sleep(2 * time.Second) {
		r := s.kubexm(t, "get", "endpoint", "-f", filepath.Join(s.dir, "config.yaml"))
		if r.code == 0 {
			break
		}
		if wait.over() {
			t.Fatalf("%s after %s was ready again:\n%s%s", wait, master, r.stdout, r.stderr)
		}
	}
	t.Logf("%s off and on: every API server in use after %s", master, time.Since(began).Round(time.Second))
	time.Sleep(15 * time.Second)
}

// aWorkerBoots cuts a worker's power. Its kubelet starts the load balancer before it reaches
// any API server: that is the way to them.
func (s *labSite) aWorkerBoots(t *testing.T, worker string) {
	t.Helper()
	h, err := s.Host(worker)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Cut(h); err != nil {
		t.Fatal(err)
	}
	if err := s.Boot(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	booted := time.Now()
	s.eventually(t, worker, readyHere)
	renewed := atHome + `at=$(` + kubectl + `--request-timeout=10s -n kube-node-lease get lease ` + worker + ` -o jsonpath='{.spec.renewTime}')
test "$(date -d "$at" +%s)" -gt ` + fmt.Sprint(booted.Unix())
	s.eventually(t, s.masters[0], renewed)
	t.Logf("%s reported %s after its boot", worker, time.Since(booted).Round(time.Second))
	s.podsAreBack(t, "app=smoke", func() []string { return []string{worker} })
	s.podsOfDNSAreBack(t)
}
