package e2e

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/testdata/lab"
	"github.com/mensylisir/kubexm/testdata/lab/components"
	"github.com/mensylisir/kubexm/testdata/lab/drivers"
	"github.com/mensylisir/kubexm/testdata/lab/mirror"
)

// balancers are the load balancers that kubexm installs, by their type.
var balancers = map[string]string{
	"kubexm-kh": "loadBalancer: {external: {type: kubexm-kh}}",
	"kubexm-kn": "loadBalancer: {external: {type: kubexm-kn}}",
}

// TestLoadBalancers is the life of a cluster of three masters behind load balancers that
// kubexm installs. KUBEXM_BALANCER names their type.
func TestLoadBalancers(t *testing.T) {
	kind := os.Getenv("KUBEXM_BALANCER")
	if kind == "" {
		t.Skip("KUBEXM_BALANCER=kubexm-kh or =kubexm-kn runs it")
	}
	if balancers[kind] == "" {
		t.Fatalf("KUBEXM_BALANCER=%s is none of kubexm-kh, kubexm-kn", kind)
	}
	s := newBalancedSite(t, kind)
	config := filepath.Join(s.dir, "config.yaml")
	before := s.inventories(t)

	said(t, s.install(t, config), 0, "create of cluster site: done")
	said(t, s.install(t, config), 0, "0 steps ran")
	s.smokeOnOne(t)
	server := map[string]string{"kubexm-kh": "up", "kubexm-kn": "ready"}[kind]
	said(t, s.kubexm(t, "get", "endpoint", "-f", config, "-o", "json"), 0, `"state": "active"`, `"state": "standby"`, `"state": "`+server+`"`, `"since"`)

	s.survives(t, kind)
	said(t, s.install(t, config), 0, "0 steps ran")

	said(t, s.kubexm(t, "delete", "cluster", "-f", config, "--yes"), 0, "delete of cluster site: done")
	s.asBefore(t, before)
}

// survives has clients at work while parts of the way to the API servers fail, and holds
// what they noticed to limits.
func (s *labSite) survives(t *testing.T, kind string) {
	t.Helper()
	unit := map[string]string{"kubexm-kh": "haproxy", "kubexm-kn": "nginx"}[kind]
	d := s.drives(t, "h4", func(c *drivers.Config) {
		c.Addresses, c.Health, c.StockWatch = nil, drivers.Health{ReadIdle: time.Second, Ping: time.Second}, true
	})
	limits := map[string]drivers.Limit{}
	phase := func(name string, limit drivers.Limit) {
		t.Helper()
		limits[name] = limit
		d.Mark(name)
	}
	quiet := drivers.Limit{Gap: 5 * time.Second, Watch: 10 * time.Second, Failed: drivers.Unlimited, NewFailed: drivers.Unlimited}
	time.Sleep(20 * time.Second) // the baseline

	phase("load balancer reloaded", drivers.Limit{Gap: time.Second, Watch: time.Second})
	holder := s.holdsVIP(t)
	for range 3 {
		s.on(t, holder, "systemctl reload "+unit)
		time.Sleep(3 * time.Second)
	}

	const inPlace, away = "/etc/kubernetes/manifests/kube-apiserver.yaml", "/etc/kubernetes/kube-apiserver.yaml"
	phase("API server stopped gracefully", drivers.Limit{Gap: time.Second, Watch: 5 * time.Second})
	s.on(t, "h3", "mv "+inPlace+" "+away)
	s.eventually(t, "h3", "test -z \"$(crictl ps -q --name kube-apiserver)\"")
	time.Sleep(5 * time.Second)
	phase("API server starts", map[string]drivers.Limit{"kubexm-kh": {Gap: 2 * time.Second, Watch: 5 * time.Second, Failed: drivers.Unlimited, NewFailed: drivers.Unlimited}, "kubexm-kn": quiet}[kind])
	s.on(t, "h3", "mv "+away+" "+inPlace)
	s.eventually(t, "h3", "curl -sk --max-time 5 https://127.0.0.1:6443/readyz | grep -q ok")
	time.Sleep(15 * time.Second)

	// Without etcd an API server listens and fails everything.
	checked := kind == "kubexm-kh"
	unready := quiet
	if checked {
		unready = drivers.Limit{Gap: 2 * time.Second, Watch: 5 * time.Second, Failed: drivers.Unlimited, NewFailed: drivers.Unlimited}
	}
	phase("API server listens and is not ready", unready)
	s.on(t, "h3", `nft -f - <<'END'
table inet away {
	chain out {
		type filter hook output priority 0
		oifname "lo" tcp dport 2379 reject with tcp reset
	}
}
END`)
	time.Sleep(unreadyTime)
	if checked {
		unready = drivers.Limit{Gap: time.Second, Watch: 5 * time.Second}
	}
	phase("the same, after "+unreadyTime.String(), unready)
	time.Sleep(10 * time.Second)
	said(t, s.kubexm(t, "get", "endpoint", "-f", filepath.Join(s.dir, "config.yaml")), 1, map[bool]string{true: " down ", false: " not ready "}[checked])
	phase("it is ready again", quiet)
	s.on(t, "h3", "nft delete table inet away")
	s.eventually(t, "h3", "curl -sk --max-time 5 https://127.0.0.1:6443/readyz | grep -q ok")
	time.Sleep(15 * time.Second)

	// The load balancers hold requests back from a master whose API server is being restarted.
	phase("everything is restarted", quiet)
	said(t, s.kubexm(t, "restart", "all", "-f", filepath.Join(s.dir, "config.yaml"), "--yes"), 0, "restart-all of cluster site: done")

	phase("load balancer host loses power", drivers.Limit{Gap: 3 * time.Second, Watch: 5 * time.Second, Failed: drivers.Unlimited, NewFailed: drivers.Unlimited})
	other := map[string]string{"h5": "h6", "h6": "h5"}[holder]
	h, err := s.Host(holder)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Cut(h); err != nil {
		t.Fatal(err)
	}
	cut := time.Now()
	s.eventually(t, other, "ip -o addr show | grep -q ' "+s.vip()+"/32 '")
	said(t, s.kubexm(t, "get", "endpoint", "-f", filepath.Join(s.dir, "config.yaml"), "-o", "json"), 1, `"holders": [
    "`+other+`"
  ]`, `"state": "unknown"`)
	time.Sleep(15 * time.Second)
	stockWatchIsBack(t, d, "load balancer host loses power", cut)
	phase("it boots again", drivers.Limit{Gap: time.Second, Watch: time.Second})
	if err := s.Boot(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	s.eventually(t, holder, "systemctl is-active keepalived "+unit)
	time.Sleep(10 * time.Second)
	if now := s.holdsVIP(t); now != other {
		t.Errorf("the virtual IP moved back to %s: nopreempt has no effect", now)
	}

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
	s.mastersComeBack(t)
}

// unreadyTime is how long haproxy may forward to an API server that has lost its etcd. For up to
// four seconds the API server reports ready itself: it asks etcd at most every two seconds, and
// waits two seconds for an answer (--etcd-readycheck-timeout). Then come two checks of haproxy.
const unreadyTime = 7 * time.Second

// mastersComeBack cuts the power of all masters at once. They boot again, and all of the
// cluster is ready without anybody's help.
func (s *labSite) mastersComeBack(t *testing.T) {
	t.Helper()
	for _, name := range s.masters {
		h, err := s.Host(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Cut(h); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	for _, name := range s.masters {
		h, err := s.Host(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Boot(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	for wait := patient(5 * time.Minute); ; time.Sleep(2 * time.Second) {
		r := s.kubexm(t, "get", "endpoint", "-f", filepath.Join(s.dir, "config.yaml"))
		if r.code == 0 {
			break
		}
		if wait.over() {
			t.Fatalf("%s after all masters booted:\n%s%s", wait, r.stdout, r.stderr)
		}
	}
	t.Logf("all masters off and on: every API server in use after %s", time.Since(began).Round(time.Second))
	s.podsOfDNSAreBack(t)
	s.smokeOnOne(t)
}

func newBalancedSite(t *testing.T, kind string) *labSite {
	t.Helper()
	l := lab.Start(t, 6)
	l.Inside(netip.MustParsePrefix("10.204.0.0/20")) // of testdata/load-balancers.yaml
	cache, err := components.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/load-balancers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := strings.Replace(string(text), balancers["kubexm-kh"], balancers[kind], 1)
	s := &labSite{Lab: l, dir: t.TempDir(), cache: cache, config: l.Config(config), masters: []string{"h1", "h2", "h3"}}
	s.write(t, "config.yaml", s.config)
	lines, err := mirror.Open(cache).Sources()
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, "lab.list", strings.Join(lines, "\n")+"\n")
	s.serve(t)
	s.bundle = s.build(t, "config.yaml")
	return s
}

func (s *labSite) vip() string { return strings.TrimSuffix(s.Hosts[0].Address, "11") + "100" }

// holdsVIP returns the host that has the virtual IP, which has to be one.
func (s *labSite) holdsVIP(t *testing.T) string {
	t.Helper()
	var holders []string
	for _, name := range []string{"h5", "h6"} {
		if strings.Contains(s.on(t, name, "ip -o addr show"), " "+s.vip()+"/32 ") {
			holders = append(holders, name)
		}
	}
	if len(holders) != 1 {
		t.Fatalf("the virtual IP is on %q", holders)
	}
	return holders[0]
}
