// Package pipeline says which modules answer one request. A new operation is a
// new function here.
//
// It may import installer/plan, installer/module and manifest.
package pipeline

import (
	"github.com/mensylisir/kubexm/installer/module"
	"github.com/mensylisir/kubexm/installer/plan"
)

// Create makes a cluster. Where a step fails, that step is undone on that host and
// no other: nine workers that have joined are not taken back because the tenth has
// not, and the next run goes on from there.
func Create() plan.Pipeline {
	return plan.Pipeline{Name: "create", Short: "Create a cluster", Modules: []plan.Module{
		module.Preflight(), module.Foundation(), module.ControlPlane(), module.Nodes(), module.Finish(),
	}}
}

// Preflight looks at hosts as a creation does first, and does no more.
func Preflight() plan.Pipeline {
	return plan.Pipeline{Name: "preflight", Short: "Look whether hosts are as they have to be", Modules: []plan.Module{module.Preflight()}}
}

// Delete takes a cluster away.
func Delete() plan.Pipeline {
	return plan.Pipeline{Name: "delete", Short: "Delete a cluster and everything that came with it", Modules: []plan.Module{
		module.Drain(), module.Removal(),
	}}
}

// Reset cleans hosts whose cluster is gone.
func Reset() plan.Pipeline {
	return plan.Pipeline{Name: "reset", Short: "Clean hosts whose cluster is gone", Modules: []plan.Module{module.Removal()}}
}

// All lists every pipeline, by the name that `kubexm plan` takes.
func All() []plan.Pipeline {
	return []plan.Pipeline{Create(), Delete(), Reset(), Preflight(), Prepare(), Restore()}
}
