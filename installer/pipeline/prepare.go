package pipeline

import (
	"github.com/mensylisir/kubexm/installer/module"
	"github.com/mensylisir/kubexm/installer/plan"
)

// Prepare makes hosts ready as a creation does, and does no more: the next creation
// finds them so.
func Prepare() plan.Pipeline {
	return plan.Pipeline{Name: "prepare", Short: "Make hosts ready", Modules: []plan.Module{module.Preflight(), module.Prepare()}}
}

// Restore is the inverse of Prepare, for hosts on which no cluster was made.
func Restore() plan.Pipeline {
	return plan.Pipeline{Name: "restore", Short: "Give hosts back what they had before", Modules: []plan.Module{module.Restore()}}
}
