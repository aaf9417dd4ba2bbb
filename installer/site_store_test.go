package installer_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/steps/etcd"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestStoreReport: the members of either kind of etcd are reported, also by a member that is not
// the first, and one that does not answer is told.
func TestStoreReport(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"masters", "masters-stacked"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, name)
				s.Must(pipeline.Create, "create")
				ask := func(silent ...string) etcd.Report {
					t.Helper()
					r, err := installer.StoreReport(t.Context(), s.Cluster, s.Hosts(silent...), nil)
					if err != nil {
						t.Fatal(err)
					}
					return r
				}
				r := ask()
				if !r.Whole() || r.Voters != 3 || r.Quorum != 2 {
					t.Errorf("%+v", r)
				}
				leader := slices.IndexFunc(r.Members, func(m etcd.MemberReport) bool { return m.Role == etcd.Leader })
				if leader < 0 || r.Members[leader].Name != s.Kube.Leader() || r.Members[leader].Size != 20<<20 {
					t.Errorf("the leader is %s: %+v", s.Kube.Leader(), r)
				}
				first := r.Members[0].Name
				s.Kube.Change(func(k *steptest.Kube) { k.Unhealthy = append(k.Unhealthy, "etcd-"+first) })
				r = ask("m1") // its host is down as well
				if r.Whole() || r.Healthy != 2 || r.Members[0].Name != first || r.Members[0].Role != "" || !strings.Contains(strings.Join(r.Members[0].Errors, ""), "does not answer") {
					t.Errorf("%+v", r)
				}
			})
		})
	}
}
