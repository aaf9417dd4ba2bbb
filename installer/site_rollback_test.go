package installer_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// failingOn is a step that ends badly on one host, after all that it did there.
type failingOn struct {
	steps.Step
	host string
}

func (f failingOn) Precheck(ctx context.Context, h *steps.Host) (steps.Verdict, error) {
	if h.Name == f.host {
		return failing{f.Step, true}.Precheck(ctx, h)
	}
	return f.Step.Precheck(ctx, h)
}

func (f failingOn) Run(ctx context.Context, h *steps.Host) error {
	if h.Name == f.host {
		return failing{f.Step, true}.Run(ctx, h)
	}
	return f.Step.Run(ctx, h)
}

// failsOn has the step of a node fail on a host.
func failsOn(id, host string) func(*plan.Node) {
	return func(n *plan.Node) {
		if n.ID == id {
			n.Step = failingOn{n.Step, host}
		}
	}
}

// outcomes lists the steps that had an outcome in the last run on a host.
func (s *site) outcomes(host string, o engine.Outcome) []string {
	var out []string
	for _, e := range s.Events {
		if e.Host == host && e.Outcome == o {
			out = append(out, e.Node)
		}
	}
	return out
}

// TestATaskIsUndone: the host on which it failed is as it was before, the others keep what
// they have, and a run that resumes does again what was undone.
func TestATaskIsUndone(t *testing.T) {
	t.Parallel()
	each(t, []string{"site"}, func(s *site) {
		before := map[string]conntest.Snapshot{}
		for name, sim := range s.Sims {
			before[name] = sim.Snapshot()
		}
		var last string
		for _, n := range s.Graph(pipeline.Prepare, nil).Nodes {
			if n.Step.Meta().Name == "node.raise-limits" {
				last = n.ID
			}
		}
		s.Rollback = engine.RollbackTask
		if err := s.Run(pipeline.Prepare, failsOn(last, "w1")); !errors.Is(err, errInjected) {
			s.t.Fatal(err)
		}
		undone := s.outcomes("w1", engine.RolledBack)
		if d := conntest.Diff(before["w1"], s.Sims["w1"].Snapshot()); d != "" || len(undone) < 2 {
			s.t.Errorf("%q were undone, and the host is not as before:\n%s", undone, d)
		}
		if conntest.Diff(before["m1"], s.Sims["m1"].Snapshot()) == "" {
			s.t.Error("m1, where nothing failed, was taken back too")
		}
		done := map[string]bool{}
		for _, e := range s.Events { // as the journal is read
			done[engine.Key(e.Node, e.At())] = e.Outcome == engine.Ran || e.Outcome == engine.Skipped
		}
		s.Passed = func(node, host string) bool { return done[engine.Key(node, host)] }
		s.Must(pipeline.Prepare, "a run that resumes")
		s.Passed = nil
		again := s.outcomes("w1", engine.Ran)
		for _, id := range undone {
			if !slices.Contains(again, id) {
				s.t.Errorf("%s was undone, and not done again", id)
			}
		}
		s.Must(pipeline.Prepare, "a run that looks at everything")
		if ran := s.ran(); len(ran) > 0 {
			s.t.Errorf("then %q ran", ran)
		}
	})
}

// TestAnyTaskIsUndone: a run that fails at a step, with nothing else left to do beside that
// task, leaves the host as it found it. Where it keeps something it says so. Afterwards a
// creation ends where one does that never failed.
func TestAnyTaskIsUndone(t *testing.T) {
	t.Parallel()
	each(t, []string{"etcd-hosts", "addons"}, func(s *site) {
		first := s.State(true)
		s.Must(pipeline.Create, "create")
		made := s.State(false)
		s.Must(pipeline.Delete, "delete")
		s.Rollback = engine.RollbackTask
		compared := 0
		for _, n := range sampled(s.t, s.Graph(pipeline.Create, nil).Nodes) {
			host := n.Hosts[len(n.Hosts)-1].Name
			if plan.IsLead(n.Hosts[0]) {
				host = "m1"
			}
			for range 4 {
				before := s.host(host)
				if err := s.Run(pipeline.Create, failsOn(n.ID, host)); err == nil { // nothing was left to do there
					break
				} else if !errors.Is(err, errInjected) {
					s.t.Fatalf("%s on %s: %v", n.ID, host, err)
				}
				others := slices.ContainsFunc(s.outcomes(host, engine.Ran), func(id string) bool { return !strings.HasPrefix(id, n.Task+"/") })
				if others || len(s.outcomes(host, engine.RollbackEnded)) > 0 || n.Step.Meta().OneWay || n.Step.Meta().Final {
					continue
				}
				compared++
				if d := conntest.Diff(before, s.host(host)); d != "" {
					s.t.Errorf("%s failed on %s, its task was undone there (%q), and the host is another:\n%s", n.ID, host, s.outcomes(host, engine.RolledBack), d)
				}
				break
			}
		}
		if compared == 0 {
			s.t.Error("nothing was compared")
		}
		s.Rollback = ""
		s.Must(pipeline.Create, "create after all rollbacks")
		s.Same("a creation whose tasks were undone ends where a whole one does", made, s.State(false))
		s.Must(pipeline.Delete, "delete")
		s.Same("a deletion gives back what was there", first, s.State(true))
	})
}

// host is a host's state, without what is written of open operations.
func (s *site) host(name string) conntest.Snapshot {
	return slices.DeleteFunc(s.Sims[name].Snapshot(), func(l string) bool {
		return strings.Contains(l, "/operation.json") || strings.Contains(l, "/kubexm-history ") || strings.Contains(l, "/ConfigMap.core/kube-system/kubexm ")
	})
}
