package installer_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/manifest/part"
)

// TestWorkerBalancers: a worker joins through a master, and uses its own load balancer from then
// on. A second run changes nothing, and a deletion removes all of it.
func TestWorkerBalancers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "load-balancers-workers")
		first := s.State(true)
		s.Must(pipeline.Create, "create")
		for host, want := range map[string]string{"m1": "192.0.2.11", "m2": "192.0.2.12", "w1": "127.0.0.1", "w2": "127.0.0.1", "r1": "192.0.2.11"} {
			if etc := s.Sims[host].Read("/etc/hosts"); !strings.Contains(etc, "\n"+want+" api.site.example\n") {
				t.Errorf("%s: /etc/hosts:\n%s", host, etc)
			}
			works := strings.HasPrefix(host, "w")
			if runs := s.Sims[host].Read(part.WorkerBalancerPod) != ""; runs != works {
				t.Errorf("%s: has a load balancer: %v", host, runs)
			}
			if config := s.Sims[host].Read("/etc/kubexm-balancer/haproxy.cfg"); works != (strings.Contains(config, "server m1 192.0.2.11:6443\n") && strings.Contains(config, "server m2 192.0.2.12:6443\n")) {
				t.Errorf("%s: haproxy.cfg:\n%s", host, config)
			}
			if ca := s.Sims[host].Read("/etc/kubexm-balancer/ca.crt"); works != (ca != "" && ca == s.Sims["m1"].Read("/etc/kubernetes/pki/ca.crt")) {
				t.Errorf("%s: CA:\n%s", host, ca)
			}
			if proxy := s.Sims[host].Read("/var/lib/kubelet/pods/00000000-0000-4000-8000-0000000000aa/etc-hosts"); host != "r1" && !strings.Contains(proxy, "\n"+want+" api.site.example\n") {
				t.Errorf("%s: /etc/hosts of kube-proxy:\n%s", host, proxy)
			}
		}
		s.Warnings = nil
		s.Must(pipeline.Create, "create again")
		if ran := s.ran(); len(ran) > 0 || len(s.Warnings) > 0 {
			t.Errorf("a second creation ran %q, and warned %q", ran, s.Warnings)
		}
		s.Must(pipeline.Delete, "delete")
		s.Same("a deletion restores the hosts", first, s.State(true))
	})
}
