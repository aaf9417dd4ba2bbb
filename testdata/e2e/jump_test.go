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

	// From: who has logged in to h2, this test's own logins left out.
	asked := 0
	logins := func() (jump, direct int) {
		t.Helper()
		asked++
		for line := range strings.Lines(s.on(t, "h2", "journalctl -q -o cat -t sshd | grep '^Accepted '")) {
			switch {
			case strings.Contains(line, " from "+s.Hosts[0].Address+" "):
				jump++
			default:
				direct++
			}
		}
		return jump, direct - asked
	}
	_, direct := logins()

	wrong := s.variant(t, "nowhere.yaml", `address: "`+s.Hosts[0].Address+`", user: ops`, `address: "`+s.Hosts[0].Address+`", user: nobody`)
	said(t, s.install(t, wrong), 3, "connectivity", s.Hosts[0].Address)

	said(t, s.install(t, config), 0, "create of cluster site: done")
	said(t, s.install(t, config), 0, "0 steps ran")
	if got := s.kubectl(t, "get", "nodes", "-o", "name"); got != "node/h2" {
		t.Errorf("the nodes are %q", got)
	}
	said(t, s.kubexm(t, "delete", "cluster", "-f", config, "--yes"), 0, "delete of cluster site: done")
	jump, after := logins()
	if jump < 3 || after != direct {
		t.Errorf("%d logins came through the jump host, %d of kubexm's did not", jump, after-direct)
	}
	s.on(t, "h1", "! test -e /var/lib/kubexm && ! test -e /etc/kubernetes && ! grep -q kubexm /etc/hosts")
	s.asBefore(t, before)
}
