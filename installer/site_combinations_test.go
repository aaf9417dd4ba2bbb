package installer_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/op"
)

// TestEveryPairIsCreated creates clusters in which each two values of different dimensions meet,
// unless they are refused. A second run changes nothing, and a deletion restores the hosts. -short
// takes every eighth.
func TestEveryPairIsCreated(t *testing.T) {
	t.Parallel()
	all, never := inPairs(func(c combination) bool {
		_, problems := manifest.Decode(strings.NewReader(c.config()))
		return problems.Err() != nil
	})
	if got := strings.Join(never, "\n"); got != refusedPairs {
		t.Errorf("never together:\n%s\nwant:\n%s", got, refusedPairs)
	}
	t.Logf("%d clusters", len(all))
	for i, c := range all {
		if testing.Short() && i%8 != 0 {
			continue
		}
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			external := c.of("etcd").name == "external"
			synctest.Test(t, func(t *testing.T) {
				s := siteOf(t, c.config(), "")
				for _, h := range s.Cluster.Spec.Hosts {
					s.Sims[h.Name].SetMachine(func(m *conntest.Machine) {
						for _, address := range h.InternalAddress {
							m.Addresses = append(m.Addresses, address+"/24")
						}
					})
				}
				first := s.State(true)
				for _, when := range []string{"create", "create again"} {
					if err := s.Run(pipeline.Create, withoutEtcd(external)); err != nil {
						t.Fatalf("%s: %v", when, err)
					}
				}
				if ran := s.ran(); len(ran) > 0 {
					t.Errorf("a second creation ran %q", ran)
				}
				s.Must(pipeline.Delete, "delete")
				s.Same("a deletion restores the hosts", first, s.State(true))
				if on := s.Kube.VIPHosts(); len(on) > 0 {
					t.Errorf("the virtual IP is left on %q", on)
				}
			})
		})
	}
}

// refusedPairs are values that never meet: see refusalsPath for the reasons.
const refusedPairs = `cilium with IPv6
none with multus
IPv6 with a cache`

// withoutEtcd has nobody look for an etcd that exists: it is not simulated.
func withoutEtcd(external bool) func(*plan.Node) {
	return func(n *plan.Node) {
		if external && n.Step.Meta().Name == "etcd.check-external" {
			n.Step = op.Check("etcd.check-external", func(context.Context, *steps.Host) (steps.Findings, error) { return nil, nil })
		}
	}
}
