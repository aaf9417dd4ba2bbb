package op_test

import (
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestAnotherMasterKnowsTheRecord: a control plane node without a local record removes what
// another one applied. Without the record in the cluster, the host's record applies.
func TestAnotherMasterKnowsTheRecord(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	secrets := func(s *conntest.Sim) (n int) {
		for _, p := range s.Below(c.Spec.Etcd.DataDir) {
			if strings.Contains(p, "/kubexm-objects.") {
				n++
			}
		}
		return n
	}
	for name, r := range map[string]op.Resource{"manifest": applied(objects), "chart": chart("a: b\n")} {
		for what, lose := range map[string]func(*conntest.Sim){
			"another master": func(s *conntest.Sim) { s.RemoveAll("/var/lib/kubexm") },
			"an older cluster": func(s *conntest.Sim) {
				for _, p := range s.Below(c.Spec.Etcd.DataDir) {
					if strings.Contains(p, "/kubexm-objects.") {
						s.RemoveAll(p)
					}
				}
			},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				kase := steptest.Case{Cluster: c, Before: steptest.ExistingCluster(c)}
				s := kase.Sim(t)
				first := s.Snapshot()
				do := func(step steps.Step) {
					t.Helper()
					h := kase.NewHost(t, s, step).ForStep(step.Meta())
					if err := step.Run(t.Context(), h); err != nil {
						t.Fatal(err)
					}
				}
				do(op.Ensure("x.install", []op.Resource{r}))
				if n := secrets(s); n != 1 {
					t.Fatalf("the cluster has %d records", n)
				}
				lose(s)
				do(op.Remove("x.uninstall", []op.Resource{r}))
				if n := secrets(s); n != 0 {
					t.Errorf("the cluster has %d records of what is gone", n)
				}
				if d := conntest.Diff(first, s.Snapshot()); d != "" {
					t.Errorf("not as before:\n%s", d)
				}
			})
		}
	}
}
