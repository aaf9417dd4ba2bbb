package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// taskPlan is two tasks on the hosts x and y: the first has the step "early", the second
// the others in turn.
func taskPlan(t *testing.T, ss ...steps.Step) *plan.Graph {
	t.Helper()
	on := func(name string, ss ...steps.Step) plan.Task {
		return plan.Task{Name: name, Plan: func(plan.Scope) plan.Fragment { return plan.On(hosts("x", "y"), ss...) }}
	}
	g, err := plan.Build(plan.Pipeline{Name: "p", Modules: []plan.Module{{Name: "m", Plan: plan.Sequential(on("first", s("early")), on("second", ss...))}}}, plan.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestRollbackTask: what a run did in a task goes with the step that fails, on that host,
// last first. What was so before, what only looks, other tasks and other hosts stay.
func TestRollbackTask(t *testing.T) {
	const first = "m/second/bad on x: out of luck"
	for _, c := range []struct {
		name     string
		rollback Rollback
		change   func(there, a, b *step)
		want     []string // of x from the failure on
		errs     []string
	}{
		{"a step alone", RollbackStep, nil, []string{"bad failed", "bad rolled back"}, []string{first}},
		{"by default", "", nil, []string{"bad failed", "bad rolled back"}, []string{first}},
		{"the task", RollbackTask, nil, []string{"bad failed", "bad rolled back", "b rolling back", "b rolled back", "a rolling back", "a rolled back"}, []string{first}},
		{"to what cannot be undone", RollbackTask, func(_, a, _ *step) { a.m.OneWay = true },
			[]string{"bad failed", "bad rolled back", "b rolling back", "b rolled back", "a kept"}, []string{first}},
		{"to what has ended well", RollbackTask, func(_, _, b *step) { b.m.Final = true },
			[]string{"bad failed", "bad rolled back", "b kept"}, []string{first}},
		{"to an undo that fails", RollbackTask, func(_, _, b *step) {
			b.rollback = func(context.Context, *steps.Host) error { return errors.New("stuck") }
		},
			[]string{"bad failed", "bad rolled back", "b rolling back", "b rolled back"}, []string{first, "m/second/b on x: not undone: stuck"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			there, a, looks, b, bad := s("there"), s("a"), s("looks"), s("b"), fails("bad", "x")
			there.did.Store("x", true)
			looks.m.ReadOnly = true
			if c.change != nil {
				c.change(there, a, b)
			}
			e, r := engine(t)
			e.Rollback = c.rollback
			err := e.Run(t.Context(), taskPlan(t, there, a, looks, b, bad))
			got := r.eventsOf("x")
			if i := slices.Index(got, "bad failed"); i < 0 || !slices.Equal(got[i:], c.want) {
				t.Errorf("%q, want %q at its end", got, c.want)
			}
			var errs []string
			if j, ok := err.(interface{ Unwrap() []error }); ok {
				for _, e := range j.Unwrap() {
					errs = append(errs, e.Error())
				}
			}
			if !slices.Equal(errs, c.errs) {
				t.Errorf("%q, want %q", errs, c.errs)
			}
			for _, name := range r.eventsOf("y") {
				if strings.HasSuffix(name, "back") {
					t.Errorf("on y: %s", name)
				}
			}
		})
	}
}

// TestRollbackTaskIsForFailures: what is broken off from outside is undone, and its task
// is kept.
func TestRollbackTaskIsForFailures(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cut := s("cut")
	cut.run = func(ctx context.Context, _ *steps.Host) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}
	e, r := engine(t)
	e.Rollback = RollbackTask
	g := graph(t, func() plan.Fragment { return plan.On(hosts("x"), s("a"), cut) })
	if err := e.Run(ctx, g); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if want := []string{"a ran", "cut interrupted", "cut rolled back"}; !slices.Equal(r.eventsOf("x"), want) {
		t.Errorf("%q, want %q", r.eventsOf("x"), want)
	}
}

// TestRollbackTaskAfterAWayBack: a guarded part goes its own way back, and the rest of the
// task follows where that came to its end.
func TestRollbackTaskAfterAWayBack(t *testing.T) {
	for bad, want := range map[string][]string{
		"":  {"bad failed", "bad rolled back", "drain rolled back", "relink rolled back", "a rolling back", "a rolled back"},
		"x": {"bad failed", "bad rolled back", "drain rolled back", "relink rolled back"},
	} {
		g := graph(t, func() plan.Fragment {
			return plan.Seq(plan.On(hosts("x"), s("a")), plan.Guarded(plan.On(hosts("x"), s("drain"), fails("bad", "x")), func(h manifest.Host) plan.Fragment {
				return plan.On([]manifest.Host{h}, fails("relink", bad))
			}))
		})
		e, r := engine(t)
		e.Rollback = RollbackTask
		if err := e.Run(t.Context(), g); err == nil {
			t.Fatal("it was to fail")
		}
		got := r.eventsOf("x")
		if i := slices.Index(got, "bad failed"); i < 0 || !slices.Equal(got[i:], want) {
			t.Errorf("%q, want %q at its end", got, want)
		}
	}
}

// TestRollbackTaskOnTheLead: what was done as the lead is undone where it was done.
func TestRollbackTaskOnTheLead(t *testing.T) {
	g := onLead(t, s("a"), fails("b", "m1"))
	e, r := engine(t)
	e.Rollback = RollbackTask
	var as []string
	e.Report = func(x Event) {
		r.report(x)
		as = append(as, x.At())
	}
	e.Lead = func(context.Context) (manifest.Host, error) { return manifest.Host{Name: "m1"}, nil }
	if err := e.Run(t.Context(), g); err == nil {
		t.Fatal("it was to fail")
	}
	if want := []string{"a ran", "b failed", "b rolled back", "a rolling back", "a rolled back"}; !slices.Equal(r.eventsOf("m1"), want) {
		t.Errorf("%q, want %q", r.eventsOf("m1"), want)
	}
	if slices.ContainsFunc(as, func(at string) bool { return at != "lead" }) {
		t.Errorf("in the plan they are on %q", as)
	}
}
