package engine

import (
	"context"
	"slices"
	"testing"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/steps"
)

// TestFindingsAreEvents: what a step lets pass is told while it runs, with where in the
// plan it stands.
func TestFindingsAreEvents(t *testing.T) {
	x := s("looks")
	x.run = func(_ context.Context, h *steps.Host) error {
		h.Report(steps.Finding{Host: h.Name, What: "little memory", Warning: true})
		return nil
	}
	g := graph(t, func() plan.Fragment { return plan.On(hosts("a"), x) })
	e, _ := engine(t)
	var got []string
	e.Report = func(e Event) {
		line := e.Node + "@" + e.Host + " " + string(e.Outcome)
		if e.Finding != nil {
			line += ": " + e.Finding.What
		}
		got = append(got, line)
	}
	if err := e.Run(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	if want := []string{"m/t/looks@a started", "m/t/looks@a found: little memory", "m/t/looks@a ran"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestWaitsAreEvents: what a step waits for is told while it runs.
func TestWaitsAreEvents(t *testing.T) {
	x := s("waits")
	x.run = func(_ context.Context, h *steps.Host) error {
		h.ReportWait("node w1 is not Ready")
		return nil
	}
	e, _ := engine(t)
	var got []string
	e.Report = func(e Event) { got = append(got, string(e.Outcome)+" "+e.Reason) }
	if err := e.Run(t.Context(), graph(t, func() plan.Fragment { return plan.On(hosts("a"), x) })); err != nil {
		t.Fatal(err)
	}
	if want := []string{"started ", "waiting node w1 is not Ready", "ran "}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
