package e2e

import (
	"os"
	"strings"
	"testing"
)

// TestCilium makes a cluster whose pods have addresses of both families from cilium, which is installed
// from its chart. A worker leaves it, another one joins, and all is taken away.
func TestCilium(t *testing.T) {
	if os.Getenv("KUBEXM_NETWORK") != "cilium" {
		t.Skip("KUBEXM_NETWORK=cilium runs it")
	}
	s, config := newScenarioSite(t, 4, "cilium.yaml")
	s.masters = []string{"h1"}
	before := s.inventories(t)

	said(t, s.install(t, config), 0, "create of cluster site: done")
	said(t, s.install(t, config), 0, "0 steps ran")
	s.on(t, "h1", "helm --kubeconfig /etc/kubernetes/admin.conf -n kube-system status cilium | grep -x 'STATUS: deployed'")
	for setting, want := range map[string]string{
		"ipam": "kubernetes", "enable-ipv4": "true", "enable-ipv6": "true", "cni-exclusive": "false", "routing-mode": "tunnel", "tunnel-protocol": "vxlan", "enable-l7-proxy": "false",
	} {
		if got := s.kubectl(t, "-n", "kube-system", "get", "configmap", "cilium-config", "-o", "jsonpath={.data."+setting+"}"); strings.TrimSpace(got) != want {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
	s.smoke(t)
	s.policiesHold(t, "cilium_host", "cilium_host")

	left := s.listing(t, "h4")
	said(t, s.kubexm(t, "node", "delete", "h4", "-f", config, "--yes"), 0, "node-delete of cluster site: done")
	s.hostAsBefore(t, before, "h4")
	s.settled(t, left)

	s.deleted(t, left)
	s.asBefore(t, before)
}
