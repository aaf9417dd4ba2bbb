package engine

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// onLead gives a graph of steps on the lead of the masters m1 and m2.
func onLead(t *testing.T, ss ...steps.Step) *plan.Graph {
	t.Helper()
	c := &manifest.Cluster{}
	c.Spec.Hosts = hosts("m1", "m2")
	c.Spec.RoleGroups.Master = []string{"m1", "m2"}
	g, err := plan.Build(plan.Pipeline{Name: "p", Modules: []plan.Module{{Name: "m", Plan: plan.Sequential(
		plan.Task{Name: "t", Plan: func(s plan.Scope) plan.Fragment { return plan.On(s.Lead(), ss...) }},
	)}}}, plan.Scope{Want: c})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestOnTheLead: each step runs on the master that is the lead when it begins, also one
// that is tried again; its events tell of both names.
func TestOnTheLead(t *testing.T) {
	lead := "m1"
	a, b, c := s("a"), s("b"), s("c")
	b.m.Retry.Times = 1
	b.run = func(_ context.Context, h *steps.Host) error {
		if h.Name == "m1" {
			lead = "m2"
			return errors.New("gone")
		}
		b.did.Store(h.Name, true)
		return nil
	}
	g := onLead(t, a, b, c)
	e, r := engine(t)
	var as []string
	e.Report = func(x Event) {
		r.report(x)
		as = append(as, x.At())
	}
	e.Lead = func(context.Context) (manifest.Host, error) { return manifest.Host{Name: lead}, nil }
	if err := e.Run(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"a@m1 ran", "b@m1 tried again", "b@m2 ran", "c@m2 ran"}, r.events); d != "" {
		t.Error(d)
	}
	if slices.ContainsFunc(as, func(at string) bool { return at != "lead" }) {
		t.Errorf("in the plan they are on %q", as)
	}
}

// TestTheLeadIsResumed by its word, whoever it is, and is not asked for then.
func TestTheLeadIsResumed(t *testing.T) {
	g := onLead(t, s("a"))
	e, r := engine(t)
	e.Passed = Resumable(g, func(_, host string) bool { return host == "lead" })
	if err := e.Run(t.Context(), g); err != nil || len(r.events) != 1 || r.events[0] != "a@lead resumed" {
		t.Errorf("%q, %v", r.events, err)
	}
}

// TestNoLead: where no master is reached, the step has failed.
func TestNoLead(t *testing.T) {
	g := onLead(t, s("a"), s("b"))
	e, r := engine(t)
	none := errors.New("nobody")
	e.Lead = func(context.Context) (manifest.Host, error) { return manifest.Host{}, none }
	if err := e.Run(t.Context(), g); !errors.Is(err, none) || len(r.events) != 1 || r.events[0] != "a@lead failed" {
		t.Errorf("%q, %v", r.events, err)
	}
}
