// Package pipeline says which modules answer one request. A new operation is a
// new function here.
//
// It may import installer/plan, installer/module and steps' vocabulary.
package pipeline

import (
	"github.com/mensylisir/kubexm/installer/module"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubernetes"
)

// Context is what pipelines are told beside the scope.
type Context struct {
	Applied func(*steps.Host) kubernetes.Applied // what the cluster is to remember
	Skip    []string                             // checks that are left out, by their steps' names
}

func (c Context) preflight() plan.Module {
	return module.Preflight(c.Skip)
}

// Create makes a cluster. Where a step fails, that step is undone on that host and
// no other: nine workers that have joined are not taken back because the tenth has
// not, and the next run goes on from there.
func Create(c Context) plan.Pipeline {
	return plan.Pipeline{Name: "create", Short: "Create a cluster", Modules: []plan.Module{
		c.preflight(), module.Foundation(), module.ControlPlane(), module.Nodes(), module.Finish(c.Applied),
	}}
}

// Preflight looks at hosts as a creation does first, and does no more.
func Preflight(c Context) plan.Pipeline {
	return plan.Pipeline{Name: "preflight", Short: "Look whether hosts are as they have to be", Modules: []plan.Module{c.preflight()}}
}

// Delete takes a cluster away.
func Delete(Context) plan.Pipeline {
	return plan.Pipeline{Name: "delete", Short: "Delete a cluster and everything that came with it", Modules: []plan.Module{
		module.Drain(), module.Removal(),
	}}
}

// Reset cleans hosts whose cluster is gone.
func Reset(Context) plan.Pipeline {
	return plan.Pipeline{Name: "reset", Short: "Clean hosts whose cluster is gone", Modules: []plan.Module{module.Removal()}}
}

// All lists every pipeline, by the name that `kubexm plan` takes.
func All(c Context) []plan.Pipeline {
	return []plan.Pipeline{Create(c), Delete(c), Reset(c), Preflight(c), Prepare(c), Restore(c)}
}
