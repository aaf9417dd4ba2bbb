package module

import (
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/task"
)

// Prepare makes hosts ready, and nothing more.
func Prepare() plan.Module {
	return plan.Module{Name: "foundation", Plan: plan.InTurn(task.PrepareNodes())}
}

// Restore gives hosts back that were made ready alone.
func Restore() plan.Module {
	return plan.Module{Name: "restoration", Plan: plan.InTurn(task.CheckUnused(), task.RestoreUnused())}
}
