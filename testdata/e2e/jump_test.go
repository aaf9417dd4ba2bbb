package e2e

import (
	"strings"
	"testing"
)

// TestJumpHost makes a cluster through a jump host and deletes it: the cluster's host
// hears of kubexm from there alone.
func TestJumpHost(t *testing.T) {
	s, config := newScenarioSite(t, 2, "jump.yaml")
	before := s.inventories(t)

	// From where somebody has logged in to h2, the lab itself left out.
	logins := func() (jump, direct int) {
		t.Helper()
		for line := range strings.Lines(s.on(t, "h2", "journalctl -q -o cat -t sshd | grep '^Accepted ' || true")) {
			switch {
			case strings.Contains(line, " from "+s.Asker()+" "):
			case strings.Contains(line, " from "+s.Hosts[0].Address+" "):
				jump++
			default:
				direct++
			}
		}
		return jump, direct
	}

	wrong := s.variant(t, "nowhere.yaml", `address: "`+s.Hosts[0].Address+`", user: ops`, `address: "`+s.Hosts[0].Address+`", user: nobody`)
	said(t, s.install(t, wrong), 3, "connectivity", s.Hosts[0].Address)

	said(t, s.install(t, config), 0, "create of cluster site: done")
	said(t, s.install(t, config), 0, "0 steps ran")
	if got := s.kubectl(t, "get", "nodes", "-o", "name"); got != "node/h2" {
		t.Errorf("the nodes are %q", got)
	}
	said(t, s.kubexm(t, "delete", "cluster", "-f", config, "--yes"), 0, "delete of cluster site: done")
	if jump, direct := logins(); jump < 3 || direct > 0 {
		t.Errorf("%d logins came through the jump host, %d did not", jump, direct)
	}
	s.on(t, "h1", "! test -e /var/lib/kubexm && ! test -e /etc/kubernetes && ! grep -q kubexm /etc/hosts")
	s.asBefore(t, before)
}
