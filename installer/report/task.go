package report

import (
	"slices"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/steps"
)

// Task summarizes one task of a plan.
type Task struct {
	Name         string
	Hosts, Needs []string // without duplicates; needs as "kind name"
	Steps        int
	Risk         steps.Risk // the highest of its steps
}

// Tasks returns the tasks of a plan, in the order in which they start.
func Tasks(g *plan.Graph) []*Task {
	var out []*Task
	for _, n := range g.Nodes {
		i := slices.IndexFunc(out, func(t *Task) bool { return t.Name == n.Task })
		if i < 0 {
			i = len(out)
			out = append(out, &Task{Name: n.Task})
		}
		t, m := out[i], n.Step.Meta()
		t.Steps++
		t.Risk = max(t.Risk, m.Risk)
		for _, h := range n.Hosts {
			if !slices.Contains(t.Hosts, h.Name) {
				t.Hosts = append(t.Hosts, h.Name)
			}
		}
		for _, need := range m.Needs {
			if s := string(need.Kind) + " " + need.Name; !slices.Contains(t.Needs, s) {
				t.Needs = append(t.Needs, s)
			}
		}
	}
	return out
}
