package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/testdata/lab/drivers"
)

// TestMembers is an etcd that grows from three members to five and shrinks again, while clients are
// at work: by two members at once, by the first one, and by one whose machine is off.
func TestMembers(t *testing.T) {
	if os.Getenv("KUBEXM_MEMBERS") == "" {
		t.Skip("KUBEXM_MEMBERS=1 runs it")
	}
	text, err := os.ReadFile("testdata/members.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, _ := newSiteOf(t, 6, string(text))
	s.masters = []string{"h1", "h2"}
	before := s.inventories(t)

	three := s.listing(t, "h5", "h6")
	said(t, s.install(t, three), 0, "create of cluster site: done")
	s.smoke(t)
	limits := map[string]drivers.Limit{}
	d := s.drives(t, "h2")
	phase := func(name string, limit drivers.Limit) {
		t.Helper()
		limits[name] = limit
		d.Mark(name)
	}
	// Each API server restarts once, and nobody asks whether it is ready before it is sent requests.
	busy := drivers.Limit{Gap: 2 * time.Second, Watch: 5 * time.Second, Failed: drivers.Unlimited, NewFailed: drivers.Unlimited}
	lost := drivers.Limit{Gap: 2 * electionTimeout, Watch: 10 * time.Second, Failed: drivers.Unlimited, NewFailed: drivers.Unlimited}
	time.Sleep(20 * time.Second) // the baseline

	five := s.listing(t)
	add := func(config string, more ...string) result {
		t.Helper()
		return s.kubexm(t, append([]string{"etcd", "add", "--bundle", s.bundle, "--allow-unsigned", "-f", config}, more...)...)
	}
	phase("two members join", busy)
	said(t, add(five, "h5"), 3, "etcd would have 4 members")
	said(t, add(five), 0, "add-etcd-member of cluster site: done")
	s.membersAre(t, five, "h2", "h3", "h4", "h5", "h6")
	said(t, add(five, "h5"), 0, "0 steps ran")
	said(t, s.install(t, five), 0, "0 steps ran")

	phase("two members leave", busy)
	said(t, s.kubexm(t, "etcd", "remove", "h2", "-f", five, "--yes"), 3, "h2", "kubexm node delete h2")
	said(t, s.kubexm(t, "etcd", "remove", "h3", "h5", "-f", five, "--yes", "--write"), 0, "remove-etcd-member of cluster site: done", "without h3, h5")
	s.membersAre(t, five, "h2", "h4", "h6")
	s.hostAsBefore(t, before, "h3")
	s.hostAsBefore(t, before, "h5")
	s.settled(t, five)

	phase("a member loses power", lost)
	off, err := s.Host("h4")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Cut(off); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * electionTimeout)
	phase("it is removed", busy)
	said(t, s.kubexm(t, "etcd", "remove", "h4", "-f", five, "--dead", "--yes", "--write"), 0, "remove-etcd-member of cluster site: done", "without h4")
	s.membersAre(t, five, "h2", "h6")

	phase("it returns, and joins again", busy)
	if err := s.Boot(t.Context(), off); err != nil {
		t.Fatal(err)
	}
	last := s.listing(t, "h3", "h5")
	said(t, add(last), 0, "add-etcd-member of cluster site: done", "cleaned: h4")
	s.membersAre(t, last, "h2", "h4", "h6")

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
	s.smoke(t)
	said(t, s.kubexm(t, "delete", "cluster", "-f", last, "--yes"), 0, "delete of cluster site: done")
	s.asBefore(t, before)
}

// membersAre compares the members of etcd, all of which are healthy, and the list of them that each
// API server has.
func (s *labSite) membersAre(t testing.TB, config string, want ...string) {
	t.Helper()
	said(t, s.kubexm(t, "etcd", "status", "-f", config), 0, want...)
	var servers []string
	for _, name := range want {
		servers = append(servers, "https://"+s.address(t, name)+":2379")
	}
	for _, m := range s.masters {
		if got := strings.TrimSpace(s.on(t, m, "pgrep -ax kube-apiserver | tr ' ' '\\n' | sed -n 's/^--etcd-servers=//p'")); got != strings.Join(servers, ",") {
			t.Errorf("the API server of %s uses %s, want %s", m, got, servers)
		}
	}
}
