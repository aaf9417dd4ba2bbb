package module

import (
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/task"
	"github.com/mensylisir/kubexm/steps"
)

// Prepare makes hosts ready, and nothing more.
func Prepare() plan.Module {
	return plan.Module{Name: "foundation", Tasks: []plan.Task{task.PrepareNodes()}}
}

// Restore gives hosts back that were made ready alone.
func Restore(say func(steps.Finding)) plan.Module {
	return plan.Module{Name: "restoration", Tasks: []plan.Task{task.CheckUnused(say), task.RestoreUnused()}}
}
