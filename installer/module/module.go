// Package module says which tasks make one part of a cluster, and which of them
// may run side by side.
//
// It may import installer/plan and installer/task.
package module

import (
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/task"
)

// Preflight looks at hosts before anything changes.
func Preflight() plan.Module {
	return plan.Module{Name: "preflight", Plan: func(do func(plan.Task) plan.Fragment) plan.Fragment {
		return plan.Par(
			do(task.Preflight()),
			do(task.CheckEtcd()),
			do(task.CheckRegistry()),
			do(task.CheckKept()),
		)
	}}
}

// Foundation prepares the nodes, installs the runtime and Kubernetes' own
// programs, and meanwhile fills the registry and brings up the store; then the
// images come to the nodes.
func Foundation() plan.Module {
	return plan.Module{Name: "foundation", Plan: func(do func(plan.Task) plan.Fragment) plan.Fragment {
		nodes := plan.Seq(
			plan.Par(
				do(task.InstallRegistry()),
				plan.Seq(do(task.InstallRuntime()), do(task.InstallKubernetes())),
			),
			do(task.PreloadImages()),
		)
		store := plan.Seq(do(task.InstallEtcd()), do(task.GiveEtcdKeys()))
		return plan.Seq(do(task.PrepareNodes()), plan.Par(nodes, store))
	}}
}

// ControlPlane makes the first master, and joins the others to it. All nodes that join
// do so through the endpoint.
func ControlPlane() plan.Module {
	return plan.Module{Name: "control-plane", Plan: plan.InTurn(task.InitControlPlane(), task.CheckEndpoint(), task.JoinMasters())}
}

// Nodes installs the pod network and joins the workers, side by side.
func Nodes() plan.Module {
	return plan.Module{Name: "nodes", Plan: func(do func(plan.Task) plan.Fragment) plan.Fragment {
		return plan.Par(do(task.InstallNetwork()), do(task.JoinWorkers()))
	}}
}

// Finish is the end of a creation: the cluster is configured, the add-ons are
// installed, and what was applied is recorded last.
func Finish() plan.Module {
	return plan.Module{Name: "finish", Plan: plan.InTurn(task.Configure(), task.InstallAddons(), task.Record())}
}

// Drain takes the add-ons away and moves the pods off the nodes.
func Drain() plan.Module {
	return plan.Module{Name: "drain", Plan: plan.InTurn(task.RemoveAddons(), task.DrainNodes())}
}

// Removal takes everything away, in the reverse order of a creation. The store
// goes when nobody asks it any more.
func Removal() plan.Module {
	return plan.Module{Name: "removal", Plan: func(do func(plan.Task) plan.Fragment) plan.Fragment {
		nodes := plan.Seq(
			do(task.ResetNodes()),
			plan.Par(
				do(task.UninstallRuntime()),
				plan.Seq(do(task.TakeEtcdKeys()), do(task.UninstallEtcd())),
				do(task.NoteEtcd()),
			),
		)
		return plan.Seq(do(task.KeepKeys()), plan.Par(nodes, do(task.UninstallRegistry())), do(task.RestoreNodes()))
	}}
}
