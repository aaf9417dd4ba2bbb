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

// RehearseDrain checks whether the nodes can be drained, if that is requested.
func RehearseDrain() plan.Module {
	return plan.Module{Name: "rehearsal", Plan: plan.Sequential(task.RehearseDrain())}
}

// RestartNodePrograms restarts the container runtime, then the kubelets. Nodes that are drained
// are drained once: both restart on the same empty node.
func RestartNodePrograms() []plan.Module {
	return []plan.Module{
		{Name: "runtime", Plan: plan.Sequential(task.Undrained(task.RestartRuntime()))},
		{Name: "nodes", Plan: plan.Sequential(task.Undrained(task.RestartKubelets()))},
		{Name: "drained-nodes", Plan: plan.Sequential(task.RestartDrainedNodes())},
	}
}

// RestartNodes restarts the kubelets.
func RestartNodes() plan.Module {
	return plan.Module{Name: "nodes", Plan: plan.Sequential(task.RestartKubelets())}
}

// RestartRuntime restarts the container runtime.
func RestartRuntime() plan.Module {
	return plan.Module{Name: "runtime", Plan: plan.Sequential(task.RestartRuntime())}
}
