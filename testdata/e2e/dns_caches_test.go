package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/testdata/lab"
)

// TestDNSCachesEmulated is the life of a cluster of two hosts with kernels of their own, which have the
// kind of interface that a DNS cache needs: with kube-proxy in mode ipvs, and calico. The worker
// restarts.
func TestDNSCachesEmulated(t *testing.T) {
	begun := time.Now()
	took := func(what string) {
		t.Helper()
		t.Logf("%s: %.0f s", what, time.Since(begun).Seconds())
		begun = time.Now()
	}
	s, config := newScenarioSite(t, 2, "dns-caches.yaml", lab.WithRoots(lab.Machine, lab.Machine))
	s.masters = []string{"h1"}
	took("the machines' start and the bundle")
	for _, h := range s.Hosts {
		s.on(t, h.Name, "modprobe nf_conntrack") // its settings come with the first rule that asks for it, and stay
	}
	before := s.inventories(t)
	took("what the hosts are")

	said(t, s.install(t, config), 0, "create of cluster site: done")
	took("create")
	s.smoke(t)
	took("smoke")
	s.routesByVXLAN(t)
	s.cachesAnswer(t)
	took("routes and DNS caches")

	h, err := s.Host("h2")
	if err != nil {
		t.Fatal(err)
	}
	since := s.on(t, "h1", "date -u +%Y-%m-%dT%H:%M:%SZ")
	begun = time.Now()
	if err := s.Reboot(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	// What the store says of before holds until the kubelet says otherwise: its lease tells.
	s.on(t, "h1", fmt.Sprintf(`export KUBECONFIG=/etc/kubernetes/admin.conf
ready() {
    test "$(kubectl --request-timeout=20s -n kube-node-lease get leases h2 -o jsonpath='{.spec.renewTime}')" \> %q &&
        kubectl --request-timeout=20s wait --for=condition=Ready nodes --all --timeout=60s &&
        kubectl --request-timeout=20s wait --for=condition=Ready pods --all -A --timeout=60s
}
until ready; do
    test $SECONDS -lt 480 || exit 1
    sleep 2
done`, since))
	took("restart of the worker, to pods that are ready")
	s.smoke(t)
	s.cachesAnswer(t)
	said(t, s.install(t, config), 0, "0 steps ran")
	took("smoke, DNS caches, and a second run")

	s.deleted(t, config)
	took("delete")
	s.asBefore(t, before)
	took("what the hosts are")
}

// routesByVXLAN asks each node how it reaches the pods of the other one, and Services.
func (s *labSite) routesByVXLAN(t *testing.T) {
	t.Helper()
	for _, pod := range strings.Fields(s.kubectl(t, "get", "pods", "-l", "app=smoke", "-o", `jsonpath={range .items[*]}{.status.podIP},{.spec.nodeName}{"\n"}{end}`)) {
		address, on, _ := strings.Cut(pod, ",")
		other := map[string]string{"h1": "h2", "h2": "h1"}[on]
		if route := s.on(t, other, "ip route get "+address); !strings.Contains(route, " dev vxlan.calico ") {
			t.Errorf("%s reaches the pod %s on %s by %s", other, address, on, route)
		}
		s.on(t, other, "ip -4 -br addr show kube-ipvs0 | grep -F 10.204.0.1/32")
	}
}

// cachesAnswer looks up names in pods: through the cache of their node, whose zone has a rule that
// CoreDNS does not have.
func (s *labSite) cachesAnswer(t *testing.T) {
	t.Helper()
	for _, pod := range strings.Fields(s.kubectl(t, "get", "pods", "-l", "app=smoke", "-o", `jsonpath={range .items[*]}{.metadata.name},{.spec.nodeName}{"\n"}{end}`)) {
		name, node, _ := strings.Cut(pod, ",")
		if conf := s.kubectl(t, "exec", name, "--", "cat", "/etc/resolv.conf"); !strings.Contains(conf, "nameserver 169.254.20.10\n") || strings.Count(conf, "nameserver") != 1 {
			t.Errorf("a pod on %s has\n%s", node, conf)
		}
		if got := s.kubectl(t, "exec", name, "--", "labtool", "get", "http://smoke.site.test"); !strings.HasPrefix(got, "smoke-") {
			t.Errorf("a pod on %s got %q", node, got)
		}
		s.on(t, node, `ip -4 -br addr show nodelocaldns | grep -F 169.254.20.10/32
			curl -sf http://169.254.20.10:9253/metrics | grep -E '^coredns_dns_requests_total[{].*zone="site.test[.]".* [1-9]'
			! iptables-save -t raw | grep 169.254.20.10`)
	}
}
