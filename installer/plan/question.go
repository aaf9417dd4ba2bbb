package plan

import (
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// Question says what a person confirms before p is carried out on c's cluster, in words
// that follow the cluster's name; "" where nobody is asked. A pipeline that does not state
// it asks where a step of its plan g destroys something, and names these steps: what a
// step merely disturbs is what the person asked for, and the plan shows it. g is nil where
// the plan is not known yet; then p has to state it.
func (p Pipeline) Question(c *manifest.Cluster, g *Graph) string {
	if p.Asks != nil {
		return p.Asks(c)
	}
	if g == nil {
		return ""
	}
	var names []string
	for _, n := range g.Nodes {
		if m := n.Step.Meta(); m.Risk == steps.Destroys && !slices.Contains(names, m.Name) {
			names = append(names, m.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "deletes data that cannot be had back: " + strings.Join(names, ", ")
}
