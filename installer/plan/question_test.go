package plan

import (
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// TestQuestion: a pipeline asks what it states, else what its plan's steps destroy.
func TestQuestion(t *testing.T) {
	risky := func(name string, r steps.Risk) steps.Step { return step{steps.Meta{Name: name, Risk: r}} }
	for _, c := range []struct {
		name  string
		steps []steps.Step
		asks  func(*manifest.Cluster) string
		want  string
	}{
		{"nothing", []steps.Step{risky("a.looks", steps.Safe)}, nil, ""},
		{"it disturbs", []steps.Step{risky("a.restart", steps.Disruptive)}, nil, ""},
		{"it destroys", []steps.Step{risky("a.restart", steps.Disruptive), risky("b.wipe", steps.Destroys), risky("c.drop", steps.Destroys)}, nil,
			"deletes data that cannot be recovered: b.wipe, c.drop"},
		{"it is stated", []steps.Step{risky("b.wipe", steps.Destroys)}, func(*manifest.Cluster) string { return "ends it" }, "ends it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := pipeline(task("t", func(Scope) Fragment { return On(hosts("x", "y"), c.steps...) }))
			p.Confirmation = c.asks
			g, err := Build(p, Scope{})
			if err != nil {
				t.Fatal(err)
			}
			if got := p.ConfirmationFor(nil, g); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	if got := (Pipeline{}).ConfirmationFor(nil, nil); got != "" {
		t.Errorf("without a plan: %q", got)
	}
}
