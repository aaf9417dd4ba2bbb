// Package pipeline says which modules answer one request, and how a person asks for
// it. A new operation is a new function here, and its line in All.
//
// It may import installer/plan, installer/module and manifest.
package pipeline

import "github.com/mensylisir/kubexm/installer/plan"

// All lists every pipeline.
func All() []plan.Pipeline {
	return append([]plan.Pipeline{Create(), Delete(), Reset(), Preflight(), Prepare(), Restore()}, Restarts()...)
}

// Named gives the pipeline of a name, as `kubexm plan` takes it.
func Named(name string) (plan.Pipeline, bool) {
	for _, p := range All() {
		if p.Name == name {
			return p, true
		}
	}
	return plan.Pipeline{}, false
}
