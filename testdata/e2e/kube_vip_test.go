package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/testdata/lab/drivers"
)

// TestKubeVIP is the life of a cluster of three masters, on one of which kube-vip holds the
// virtual IP. KUBEXM_BALANCER=kube-vip runs it.
func TestKubeVIP(t *testing.T) {
	if os.Getenv("KUBEXM_BALANCER") != "kube-vip" {
		t.Skip("KUBEXM_BALANCER=kube-vip runs it")
	}
	text, err := os.ReadFile("testdata/kube-vip.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, config := newSiteOf(t, 4, string(text))
	s.masters = []string{"h1", "h2", "h3"}
	before := s.inventories(t)

	said(t, s.install(t, config), 0, "create of cluster site: done")
	said(t, s.install(t, config), 0, "0 steps ran")
	s.smokeOnOne(t)
	said(t, s.kubexm(t, "get", "endpoint", "-f", config, "-o", "json"), 0, `"program": "kube-vip"`, `"state": "active"`, `"state": "standby"`, `"state": "ready"`, `"since"`)
	s.superAdminIsUnused(t)
	s.kubeVIPIsValid(t)

	s.survivesWithKubeVIP(t)
	s.mastersComeBack(t)
	said(t, s.install(t, config), 0, "0 steps ran")

	said(t, s.kubexm(t, "delete", "cluster", "-f", config, "--yes"), 0, "delete of cluster site: done")
	for _, name := range s.masters {
		if out := s.on(t, name, "ip -o addr show"); strings.Contains(out, " "+s.vip()+"/") {
			t.Errorf("%s has the virtual IP still:\n%s", name, out)
		}
	}
	s.asBefore(t, before)
}

// superAdminIsUnused: no pod of a master mounts the kubeconfig that may do everything, and
// kube-vip's may do nothing but take its lease.
func (s *labSite) superAdminIsUnused(t *testing.T) {
	t.Helper()
	for _, name := range s.masters {
		s.on(t, name, `if grep super-admin.conf /etc/kubernetes/manifests/*; then exit 1; fi
for id in $(crictl ps -q); do if crictl inspect "$id" | grep super-admin.conf; then exit 1; fi; done
test -n "$(crictl ps -q --name '^kube-vip$')"`)
	}
	const as = "--kubeconfig /etc/kubernetes/kube-vip.conf --server https://api.site.example:6443 --request-timeout=10s "
	s.on(t, "h1", "kubectl "+as+"-n kube-system get lease plndr-cp-lock")
	for _, words := range []string{"-n kube-system get secrets", "get nodes", "-n kube-system delete lease plndr-cp-lock", "-n kube-system get lease kube-scheduler"} {
		s.on(t, "h1", "! kubectl "+as+words)
	}
}

// kubeVIPIsValid: an API server accepts the pod with the image of the real program, every field
// of it. The kubelet itself ignores fields that it does not know.
func (s *labSite) kubeVIPIsValid(t *testing.T) {
	t.Helper()
	const file = "/etc/kubernetes/manifests/kube-vip.yaml"
	s.on(t, "h1", `grep -Eq '^      image: ghcr\.io/kube-vip/kube-vip:v[0-9.]+$' `+file)
	if out := s.master(t, "h1", "apply --dry-run=server --validate=strict -f "+file); !strings.Contains(out, "pod/kube-vip created (server dry run)") {
		t.Errorf("kube-vip.yaml: %s", out)
	}
}

// kubeVIPHolder returns the master that has the virtual IP, which has to be one.
func (s *labSite) kubeVIPHolder(t *testing.T) string {
	t.Helper()
	var holders []string
	for _, name := range s.masters {
		if strings.Contains(s.on(t, name, "ip -o addr show"), " "+s.vip()+"/32 ") {
			holders = append(holders, name)
		}
	}
	if len(holders) != 1 {
		t.Fatalf("the virtual IP is on %q", holders)
	}
	return holders[0]
}

// survivesWithKubeVIP has clients at work while masters fail, and holds what they noticed to
// limits.
func (s *labSite) survivesWithKubeVIP(t *testing.T) {
	t.Helper()
	d := s.drives(t, "h4", func(c *drivers.Config) {
		c.Addresses, c.Health, c.StockWatch = nil, drivers.Health{ReadIdle: time.Second, Ping: time.Second}, true
		// The node port of a master that boots leads to pods of other nodes, before its pod network is
		// back: such packets would leave the lab.
		c.Nodes = []string{s.address(t, "h4")}
	})
	limits := map[string]drivers.Limit{}
	phase := func(name string, limit drivers.Limit) {
		t.Helper()
		limits[name] = limit
		d.Mark(name)
	}
	const some = drivers.Unlimited
	quiet := drivers.Limit{Gap: 5 * time.Second, Watch: 10 * time.Second, Failed: some, NewFailed: some}
	// The lease lasts five seconds, another master tries each second or two, and a watch comes
	// again after that.
	moves := drivers.Limit{Gap: 10 * time.Second, NewGap: 10 * time.Second, Watch: 15 * time.Second, Failed: some, NewFailed: some}
	time.Sleep(20 * time.Second) // the baseline

	const inPlace, away = "/etc/kubernetes/manifests/kube-apiserver.yaml", "/etc/kubernetes/kube-apiserver.yaml"
	stop := func(master string) {
		s.on(t, master, "mv "+inPlace+" "+away)
		s.eventually(t, master, "test -z \"$(crictl ps -q --name kube-apiserver)\"")
	}
	start := func(master string) {
		s.on(t, master, "mv "+away+" "+inPlace)
		s.eventually(t, master, readyHere)
		time.Sleep(15 * time.Second)
	}
	holder := s.kubeVIPHolder(t)
	others := slices.DeleteFunc(slices.Clone(s.masters), func(m string) bool { return m == holder })
	phase("API server of another master stopped gracefully", drivers.Limit{Gap: time.Second, Watch: time.Second})
	stop(others[0])
	time.Sleep(5 * time.Second)
	if now := s.kubeVIPHolder(t); now != holder {
		t.Errorf("the virtual IP moved from %s to %s", holder, now)
	}
	phase("it starts again", quiet)
	start(others[0])

	phase("API server of the holder stopped gracefully", moves)
	stop(holder)
	s.eventually(t, holder, "! ip -o addr show | grep -q ' "+s.vip()+"/32 '")
	time.Sleep(15 * time.Second)
	said(t, s.kubexm(t, "get", "endpoint", "-f", filepath.Join(s.dir, "config.yaml")), 1, " not ready ")
	phase("the holder's starts again", quiet)
	start(holder)

	was := s.kubeVIPHolder(t)
	if was == holder {
		t.Errorf("the virtual IP is on %s, which had no API server", was)
	}
	phase("holder loses power", moves)
	h, err := s.Host(was)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Cut(h); err != nil {
		t.Fatal(err)
	}
	cut := time.Now()
	left := slices.DeleteFunc(slices.Clone(s.masters), func(m string) bool { return m == was })
	s.eventually(t, left[0], "ping -c 1 -W 1 "+s.vip())
	said(t, s.kubexm(t, "get", "endpoint", "-f", filepath.Join(s.dir, "config.yaml")), 1, was, "unknown")
	time.Sleep(15 * time.Second)
	stockWatchIsBack(t, d, "holder loses power", cut)
	phase("it boots again", quiet)
	if err := s.Boot(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	s.eventually(t, was, readyHere)
	time.Sleep(15 * time.Second)
	if now := s.kubeVIPHolder(t); now == was {
		t.Errorf("the virtual IP moved back to %s", was)
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
}
