package e2e

import (
	"encoding/json"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestCalico makes a cluster whose pods have addresses of both families from calico, and are
// connected by VXLAN. A worker leaves it, another one loses its power, and all is taken away.
func TestCalico(t *testing.T) {
	if os.Getenv("KUBEXM_NETWORK") != "calico" {
		t.Skip("KUBEXM_NETWORK=calico runs it")
	}
	s, config := newScenarioSite(t, 4, "calico.yaml")
	s.masters = []string{"h1"}
	before := s.inventories(t)

	said(t, s.install(t, config), 0, "create of cluster site: done")
	said(t, s.install(t, config), 0, "0 steps ran")
	s.calicoIsAsConfigured(t)
	s.smoke(t)
	s.policiesHold(t, "vxlan.calico", "vxlan-v6.calico")

	left := s.listing(t, "h4")
	said(t, s.kubexm(t, "node", "delete", "h4", "-f", config, "--yes"), 0, "node-delete of cluster site: done")
	s.hostAsBefore(t, before, "h4")
	// Its controllers give the addresses of a node back when its pods have gone.
	s.eventually(t, "h1", `! calicoctl get nodes -o name | grep h4 && ! kubectl --kubeconfig /etc/kubernetes/admin.conf get blockaffinities | grep h4`)
	s.settled(t, left)

	h, err := s.Host("h3")
	if err != nil {
		t.Fatal(err)
	}
	s.on(t, "h3", "sync")
	cut := time.Now()
	if err := s.Cut(h); err != nil {
		t.Fatal(err)
	}
	if err := s.Boot(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	s.comesUp(t, "h3", cut)
	s.smoke(t)

	s.deleted(t, left)
	s.asBefore(t, before)
}

// TestCalicoByBGP makes a cluster whose nodes exchange routes to pods by BGP, by Debian's BIRD, and takes
// it away.
func TestCalicoByBGP(t *testing.T) {
	if os.Getenv("KUBEXM_NETWORK") != "calico-bgp" {
		t.Skip("KUBEXM_NETWORK=calico-bgp runs it")
	}
	s, config := newScenarioSite(t, 3, "calico-bgp.yaml")
	s.masters = []string{"h1"}
	before := s.inventories(t)

	said(t, s.install(t, config), 0, "create of cluster site: done")
	said(t, s.install(t, config), 0, "0 steps ran")
	s.smoke(t)
	for _, pod := range strings.Fields(s.kubectl(t, "-n", "kube-system", "get", "pods", "-l", "k8s-app=calico-node", "-o", `jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}`)) {
		if said := s.kubectl(t, "-n", "kube-system", "exec", pod, "-c", "calico-node", "--", "birdcl", "-s", "/var/run/calico/bird.ctl", "show", "protocols"); strings.Count(said, "Established") != 2 {
			t.Errorf("%s does not exchange routes with both other nodes:\n%s", pod, said)
		}
	}
	for _, pod := range strings.Fields(s.kubectl(t, "get", "pods", "-l", "app=smoke", "-o", `jsonpath={range .items[*]}{.status.podIP},{.spec.nodeName}{"\n"}{end}`)) {
		address, node, _ := strings.Cut(pod, ",")
		for _, h := range []string{"h1", "h2", "h3"} {
			if h == node {
				continue
			}
			if route := s.on(t, h, "ip route get "+address); !strings.Contains(route, " via "+s.address(t, node)+" dev eth0 ") {
				t.Errorf("%s reaches the pod %s on %s by %s", h, address, node, route)
			}
		}
	}
	s.on(t, "h3", "ip route show proto bird | grep -q ^blackhole")

	s.deleted(t, config)
	s.asBefore(t, before)
}

// calicoIsAsConfigured reads the settings of the config where calico has them.
func (s *labSite) calicoIsAsConfigured(t *testing.T) {
	t.Helper()
	var pools struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct {
				CIDR, IPIPMode, VXLANMode string
				BlockSize                 int
			}
		}
	}
	if err := json.Unmarshal([]byte(s.on(t, "h1", "calicoctl get ippools -o json")), &pools); err != nil {
		t.Fatal(err)
	}
	if len(pools.Items) != 2 {
		t.Fatalf("%d pools: %+v", len(pools.Items), pools)
	}
	for _, p := range pools.Items {
		cidr, block := "10.203.0.0/16", 27
		if strings.Contains(p.Spec.CIDR, ":") {
			cidr, block = "fd98:0:0:1::/64", 122 // calico's own
		}
		if p.Spec.CIDR != cidr || p.Spec.BlockSize != block || p.Spec.IPIPMode != "Never" || p.Spec.VXLANMode != "Always" {
			t.Errorf("a pool is %+v", p)
		}
	}
	// A node's address is the one that Kubernetes has for it.
	nodes := s.on(t, "h1", "calicoctl get nodes -o wide")
	for _, h := range s.Hosts {
		if !strings.Contains(nodes, s.address(t, h.Name)+"/") {
			t.Errorf("calico has another address of %s:\n%s", h.Name, nodes)
		}
	}
	s.on(t, "h1", "ps -C calico-node -o args= | grep -q felix && ! pgrep bird")
}

// policiesHold asks pods on other nodes by both families, before and after policies forbid it. four and
// six are the interfaces by which nodes reach them.
func (s *labSite) policiesHold(t *testing.T, four, six string) {
	t.Helper()
	all := readText(t, "testdata/calico-policy.yaml")
	pods, policies, _ := strings.Cut(all, "---\napiVersion: networking")
	s.kubectl(t, "apply", "-f", s.write(t, "pods.yaml", pods))
	s.kubectl(t, "wait", "--for=condition=Ready", "pod/friend", "pod/stranger", "pod/mute", "--timeout=60s")

	var targets []string
	for _, pod := range strings.Fields(s.kubectl(t, "get", "pods", "-l", "app=smoke", "-o", `jsonpath={range .items[*]}{.status.podIPs[0].ip},{.status.podIPs[1].ip},{.spec.nodeName}{"\n"}{end}`)) {
		of := strings.Split(pod, ",")
		if len(of) != 3 || net.ParseIP(of[0]).To4() == nil || net.ParseIP(of[1]) == nil {
			t.Fatalf("a pod has the addresses %q", pod)
		}
		targets = append(targets, of[0], of[1])
		for _, h := range []string{"h2", "h3", "h4"} { // every node reaches the others' pods through its tunnel
			if h == of[2] {
				continue
			}
			for address, device := range map[string]string{of[0]: four, of[1]: six} {
				if route := s.on(t, h, "ip route get "+address); !strings.Contains(route, " dev "+device+" ") {
					t.Errorf("%s reaches %s by %s", h, address, route)
				}
			}
		}
	}
	targets = append(targets, strings.Fields(s.kubectl(t, "get", "service", "both", "-o", "jsonpath={.spec.clusterIPs[*]}"))...)
	if len(targets) != 8 {
		t.Fatalf("targets %q", targets)
	}
	asks := func(from, to string) bool {
		port := "8080"
		if strings.HasPrefix(to, "10.204.") || strings.HasPrefix(to, "fd98:0:0:2:") {
			port = "80"
		}
		out, err := s.tryKubectl(t, "exec", from, "--", "labtool", "get", "http://"+net.JoinHostPort(to, port))
		if err != nil && !strings.Contains(err.Error()+out, "Timeout") && !strings.Contains(err.Error()+out, "deadline") {
			t.Errorf("%s asks %s: %s %v", from, to, out, err) // not dropped, but failed
		}
		return err == nil
	}
	check := func(when string, may map[string]bool) {
		t.Helper()
		var all sync.WaitGroup // what is dropped takes its time
		for from, want := range may {
			for _, to := range targets {
				all.Go(func() {
					if got := asks(from, to); got != want {
						t.Errorf("%s: %s reaches %s: %t, want %t", when, from, to, got, want)
					}
				})
			}
		}
		all.Wait()
	}
	check("without a policy", map[string]bool{"friend": true, "stranger": true, "mute": true})
	file := s.write(t, "policies.yaml", "apiVersion: networking"+policies)
	s.kubectl(t, "apply", "-f", file)
	s.on(t, "h1", "sleep 3") // felix programs them in a moment
	check("with policies", map[string]bool{"friend": true, "stranger": false, "mute": false})
	s.kubectl(t, "delete", "-f", file)
	s.on(t, "h1", "sleep 3")
	check("without policies again", map[string]bool{"stranger": true, "mute": true})
	s.kubectl(t, "delete", "-f", s.write(t, "pods.yaml", pods))
}
