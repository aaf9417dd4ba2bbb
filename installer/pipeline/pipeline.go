// Package pipeline selects the modules of each request, and describes its command. A new
// operation is a new function in this package, and its line in All.
//
// It may import installer/plan, installer/module and manifest.
package pipeline

import (
	"slices"

	"github.com/mensylisir/kubexm/installer/plan"
)

// All lists every pipeline.
func All() []plan.Pipeline {
	return slices.Concat([]plan.Pipeline{Create(), Delete(), Reset(), Preflight(), Prepare(), Restore(), AddNodes(), DeleteNodes()}, Restarts(), Store())
}

// Named returns the pipeline with a name, as `kubexm plan` takes it.
func Named(name string) (plan.Pipeline, bool) {
	for _, p := range All() {
		if p.Name == name {
			return p, true
		}
	}
	return plan.Pipeline{}, false
}
