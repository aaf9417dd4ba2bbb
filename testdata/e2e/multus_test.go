package e2e

import (
	"os"
	"strings"
	"testing"
)

// TestMultus makes a cluster whose pods have a second interface where they ask for one, adds a node to
// it, and takes it away.
func TestMultus(t *testing.T) {
	if os.Getenv("KUBEXM_NETWORK") != "multus" {
		t.Skip("KUBEXM_NETWORK=multus runs it")
	}
	s, config := newScenarioSite(t, 3, "multus.yaml")
	s.masters = []string{"h1"}
	before := s.inventories(t)

	without := s.listing(t, "h3")
	said(t, s.install(t, without), 0, "create of cluster site: done")
	said(t, s.install(t, without), 0, "0 steps ran")
	s.smoke(t)
	s.kubectl(t, "apply", "-f", "testdata/multus-pods.yaml")
	s.attached(t, 2)
	said(t, s.kubexm(t, "node", "add", "h3", "--bundle", s.bundle, "--allow-unsigned", "-f", config), 0, "node-add of cluster site: done")
	s.attached(t, 3)
	s.smoke(t)

	s.deleted(t, config)
	s.asBefore(t, before)
}

// attached waits until there are pods with a second interface on as many nodes, and looks at that.
func (s *labSite) attached(t *testing.T, nodes int) {
	t.Helper()
	s.kubectl(t, "rollout", "status", "daemonset/attached", "--timeout=120s")
	pods := strings.Fields(s.kubectl(t, "get", "pods", "-l", "app=attached", "-o", `jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}`))
	if len(pods) != nodes {
		t.Errorf("pods %q on %d nodes", pods, nodes)
	}
	for _, pod := range pods {
		if is := s.kubectl(t, "exec", pod, "--", "ip", "-4", "-br", "addr"); !strings.Contains(is, " 10.205.0.") || !strings.Contains(is, " 10.203.") {
			t.Errorf("%s has\n%s", pod, is)
		}
		if status := s.kubectl(t, "get", "pod", pod, "-o", `jsonpath={.metadata.annotations.k8s\.v1\.cni\.cncf\.io/network-status}`); !strings.Contains(status, `"name": "default/second"`) {
			t.Errorf("%s has the status %s", pod, status)
		}
	}
}
