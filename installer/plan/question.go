package plan

import (
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// ConfirmationFor returns what the user has to confirm before p is executed on c's cluster, in
// words that follow the cluster's name; "" if no confirmation is required. Without
// Confirmation, it lists the steps of the plan g that destroy data. Disruptive steps need no
// confirmation: the user has requested them, and the plan shows them. g is nil if the plan is
// not known yet; then p must have Confirmation.
func (p Pipeline) ConfirmationFor(c *manifest.Cluster, g *Graph) string {
	if p.Confirmation != nil {
		return p.Confirmation(c)
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
	return "deletes data that cannot be recovered: " + strings.Join(names, ", ")
}
