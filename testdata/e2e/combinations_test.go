package e2e

import (
	"os"
	"strings"
	"testing"
	"time"
)

// madeOf is a cluster in which kinds of load balancers, etcd, networks, proxy modes and IP families
// meet that other scenarios have apart.
type madeOf struct {
	hosts   int
	masters []string
	workers int
	// fails makes something fail, and brings it back.
	fails func(*testing.T, *labSite)
}

var three = []string{"h1", "h2", "h3"}

// combinations are the clusters of testdata/combination-*.yaml.
var combinations = map[string]madeOf{
	"a": {6, three, 1, func(t *testing.T, s *labSite) {
		s.eventually(t, "h1", kubectl+"top nodes --no-headers | grep -q '^h4 .*Mi'")
		s.reachedWithout(t, s.holdsVIP(t))
	}},
	"b": {5, three, 2, func(t *testing.T, s *labSite) { s.losesAMaster(t, "h1", "h2"); s.boots(t, "h1") }},
	"c": {4, three[:2], 1, func(t *testing.T, s *labSite) { s.reachedWithout(t, s.kubeVIPHolder(t)) }},
	"d": {6, three, 1, func(t *testing.T, s *labSite) { s.reachedWithout(t, "h2") }},
	"e": {5, three, 2, func(t *testing.T, s *labSite) {
		s.kubectl(t, "apply", "-f", "testdata/storage-pods.yaml")
		s.written(t, "h4", "h5")
		s.losesAMaster(t, "h1", "h2")
		s.boots(t, "h1")
	}},
	"f": {4, three, 1, func(t *testing.T, s *labSite) { s.superAdminIsUnused(t); s.mastersComeBack(t) }},
}

// TestCombination is the life of one of them, which KUBEXM_COMBINATION names.
func TestCombination(t *testing.T) {
	name := os.Getenv("KUBEXM_COMBINATION")
	if name == "" {
		t.Skip("KUBEXM_COMBINATION=a to =f runs it")
	}
	c, ok := combinations[name]
	if !ok {
		t.Fatalf("KUBEXM_COMBINATION=%s is none of a to f", name)
	}
	s, config := newScenarioSite(t, c.hosts, "combination-"+name+".yaml")
	s.masters = c.masters
	external := strings.Contains(s.config, "etcd: {type: external")
	before := s.inventories(t)
	if external {
		s.startOutside(t)
	}
	smoke := func() {
		t.Helper()
		if c.workers == 1 {
			s.smokeOnOne(t)
		} else {
			s.smoke(t)
		}
	}

	said(t, s.install(t, config), 0, "create of cluster site: done")
	said(t, s.install(t, config), 0, "0 steps ran")
	_, mode, _ := strings.Cut(s.config, "kubeProxy: {mode: ")
	mode, _, _ = strings.Cut(mode, "}")
	if got := s.kubectl(t, "-n", "kube-system", "get", "configmap", "kube-proxy", "-o", `jsonpath={.data.config\.conf}`); !strings.Contains(got, "mode: "+mode) {
		t.Errorf("kube-proxy's mode is not %s:\n%s", mode, got)
	}
	smoke()
	c.fails(t, s)
	smoke()
	said(t, s.install(t, config), 0, "0 steps ran")

	said(t, s.kubexm(t, "delete", "cluster", "-f", config, "--yes"), 0, "delete of cluster site: done")
	if external {
		s.outside(t, "del --prefix /registry/")
		s.on(t, "h4", "systemctl stop outside && rm -rf /srv/outside")
	}
	s.asBefore(t, before)
}

// reachedWithout cuts a host's power: a worker reaches the API servers by the virtual IP, again
// within half a minute. Then the host boots.
func (s *labSite) reachedWithout(t *testing.T, host string) {
	t.Helper()
	s.losesPower(t, host)
	cut := time.Now()
	worker := s.Hosts[len(s.masters)].Name
	s.within(t, 30*time.Second, worker, "curl -sk --max-time 5 https://"+s.vip()+":6443/readyz | grep -q ok")
	t.Logf("the API answers on the virtual IP %s after %s lost its power", time.Since(cut).Round(time.Second), host)
	s.boots(t, host)
}

// boots boots a host, and returns when it does what it did: a master serves, and a load balancer
// reaches one that does.
func (s *labSite) boots(t *testing.T, host string) {
	t.Helper()
	h, err := s.Host(host)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Boot(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	s.within(t, 5*time.Minute, host, readyHere)
	s.within(t, 5*time.Minute, s.masters[0], atHome+kubectl+"--request-timeout=10s wait --for=condition=Ready nodes --all --timeout=10s")
}
