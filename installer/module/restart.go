package module

import (
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/task"
)

// RestartStore restarts the etcd members.
func RestartStore() plan.Module {
	return plan.Module{Name: "store", Plan: plan.Sequential(task.RestartStore())}
}

// RestartControlPlane restarts the control plane components on masters.
func RestartControlPlane() plan.Module {
	return plan.Module{Name: "control-plane", Plan: plan.Sequential(task.RestartControlPlane())}
}

// RestartNodes restarts the kubelets.
func RestartNodes() plan.Module {
	return plan.Module{Name: "nodes", Plan: plan.Sequential(task.RestartKubelets())}
}

// RestartRuntime restarts the container runtime.
func RestartRuntime() plan.Module {
	return plan.Module{Name: "runtime", Plan: plan.Sequential(task.RestartRuntime())}
}
