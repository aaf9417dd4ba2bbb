package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/testdata/lab/drivers"
)

// TestBackEnds: a master leaves a cluster behind load balancers and joins it again while clients are
// at work. The load balancers forward to no API server that stops, nor to one before it is ready.
// KUBEXM_BACK_ENDS names their type.
func TestBackEnds(t *testing.T) {
	kind := os.Getenv("KUBEXM_BACK_ENDS")
	if kind == "" {
		t.Skip("KUBEXM_BACK_ENDS=kubexm-kh or =kubexm-kn runs it")
	}
	if balancers[kind] == "" {
		t.Fatalf("KUBEXM_BACK_ENDS=%s is none of kubexm-kh, kubexm-kn", kind)
	}
	s := newBalancedSite(t, kind)
	config := filepath.Join(s.dir, "config.yaml")
	before := s.inventories(t)
	said(t, s.install(t, config), 0, "create of cluster site: done")
	d := s.drives(t, "h4", func(c *drivers.Config) {
		c.Addresses, c.Health = nil, drivers.Health{ReadIdle: time.Second, Ping: time.Second}
		c.Nodes = []string{s.address(t, "h4")} // the only worker
	})
	time.Sleep(20 * time.Second) // the baseline

	const leaves, joins = "a master leaves", "a master joins"
	limits := map[string]drivers.Limit{
		leaves: {Gap: 2 * time.Second, Watch: 5 * time.Second}, // etcd loses a member, and may elect a leader
		joins:  {Gap: time.Second, Watch: 5 * time.Second},
	}
	d.Mark(leaves)
	said(t, s.kubexm(t, "node", "delete", "h3", "-f", config, "--yes"), 0, "node-delete of cluster site: done")
	said(t, s.kubexm(t, "get", "endpoint", "-f", s.listing(t, "h3")), 0, "h1", "h2")
	s.hostAsBefore(t, before, "h3")
	d.Mark(joins)
	said(t, s.kubexm(t, "node", "add", "h3", "--bundle", s.bundle, "--allow-unsigned", "-f", config), 0, "node-add of cluster site: done")
	said(t, s.kubexm(t, "get", "endpoint", "-f", config), 0, "h1", "h2", "h3")
	time.Sleep(10 * time.Second)

	report, err := d.Stop(t.Context())
	if err != nil {
		t.Error(err)
	}
	t.Logf("\n%s", report)
	for name, limit := range limits {
		if err := report.Check(name, limit); err != nil {
			t.Error(err)
		}
		p, err := report.Phase(name)
		if err != nil {
			t.Fatal(err)
		}
		if n := p.Ways[drivers.Writes].Failed; n > 0 {
			t.Errorf("%s: %d writes failed", name, n)
		}
		if name == joins && p.Watch.Breaks > 0 { // a watch ends with the API server that serves it
			t.Errorf("%s: %d watches broke", name, p.Watch.Breaks)
		}
	}
	s.settled(t, config)
	said(t, s.kubexm(t, "delete", "cluster", "-f", config, "--yes"), 0, "delete of cluster site: done")
	s.asBefore(t, before)
}
