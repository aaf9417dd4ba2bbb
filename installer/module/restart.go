package module

import (
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/task"
)

// RestartStore restarts the members of the store.
func RestartStore() plan.Module {
	return plan.Module{Name: "store", Plan: plan.InTurn(task.RestartStore())}
}

// RestartControlPlane restarts what runs on masters alone.
func RestartControlPlane() plan.Module {
	return plan.Module{Name: "control-plane", Plan: plan.InTurn(task.RestartControlPlane())}
}

// RestartNodes restarts the kubelets.
func RestartNodes() plan.Module {
	return plan.Module{Name: "nodes", Plan: plan.InTurn(task.RestartKubelets())}
}

// RestartRuntime restarts the container runtime.
func RestartRuntime() plan.Module {
	return plan.Module{Name: "runtime", Plan: plan.InTurn(task.RestartRuntime())}
}
