package module

import (
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/task"
)

// Prepare only prepares hosts.
func Prepare() plan.Module {
	return plan.Module{Name: "foundation", Plan: plan.Sequential(task.PrepareNodes())}
}

// Restore restores hosts that were only prepared.
func Restore() plan.Module {
	return plan.Module{Name: "restoration", Plan: plan.Sequential(task.CheckUnused(), task.RestoreUnused())}
}
