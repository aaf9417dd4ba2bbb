// Package module selects the tasks that create one part of a cluster, and which of them may
// run in parallel.
//
// It may import installer/plan and installer/task.
package module

import (
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/task"
)

// Preflight checks hosts before anything is changed.
func Preflight() plan.Module {
	return plan.Module{Name: "preflight", Plan: func(do func(plan.Task) plan.Fragment) plan.Fragment {
		return plan.Par(
			do(task.Preflight()),
			do(task.CheckEtcd()),
			do(task.CheckRegistry()),
			do(task.CheckPreserved()),
		)
	}}
}

// Foundation prepares the nodes and installs the container runtime and the Kubernetes
// programs. In parallel it fills the registry and installs etcd. The images come to the nodes
// last.
func Foundation() plan.Module {
	return plan.Module{Name: "foundation", Plan: func(do func(plan.Task) plan.Fragment) plan.Fragment {
		nodes := plan.Seq(
			plan.Par(
				do(task.InstallRegistry()),
				plan.Seq(do(task.InstallRuntime()), do(task.InstallKubernetes())),
			),
			do(task.PreloadImages()),
		)
		store := plan.Seq(do(task.InstallEtcd()), do(task.InstallEtcdClientFiles()))
		return plan.Seq(do(task.PrepareNodes()), plan.Par(nodes, store, do(task.InstallLoadBalancers())))
	}}
}

// ControlPlane creates the first master, and joins the others to it. All nodes join through
// the endpoint.
func ControlPlane() plan.Module {
	return plan.Module{Name: "control-plane", Plan: plan.Sequential(task.InitControlPlane(), task.TrustLoadBalancers(), task.InstallKubeVIP(), task.CheckEndpoint(), task.JoinMasters())}
}

// Nodes installs the pod network and the DNS cache, and joins the workers, in parallel. A worker
// gets its own load balancer once it has joined: kubeadm join needs an API server before the kubelet
// runs a pod.
func Nodes() plan.Module {
	return plan.Module{Name: "nodes", Plan: func(do func(plan.Task) plan.Fragment) plan.Fragment {
		return plan.Par(plan.Seq(do(task.InstallNetwork()), do(task.InstallDNSCache())), plan.Then(do(task.JoinWorkers()), do(task.BalanceOnWorkers())))
	}}
}

// Finish ends an installation: it configures the cluster, installs the add-ons, and writes the
// cluster record last.
func Finish() plan.Module {
	return plan.Module{Name: "finish", Plan: plan.Sequential(task.Configure(), task.InstallAddons(), task.Record())}
}

// Drain removes the add-ons and drains the nodes.
func Drain() plan.Module {
	return plan.Module{Name: "drain", Plan: plan.Sequential(task.RemoveAddons(), task.DrainNodes())}
}

// Removal removes everything, in the reverse order of an installation. etcd is removed when no
// client uses it any more.
func Removal() plan.Module {
	return plan.Module{Name: "removal", Plan: func(do func(plan.Task) plan.Fragment) plan.Fragment {
		nodes := plan.Seq(
			do(task.ResetNodes()),
			plan.Par(
				do(task.UninstallRuntime()),
				do(task.UninstallLoadBalancers()),
				do(task.RemoveWorkerBalancers()),
				plan.Seq(do(task.RemoveEtcdClientFiles()), do(task.UninstallEtcd())),
				do(task.ReportEtcd()),
			),
		)
		return plan.Seq(do(task.PreserveKeys()), plan.Par(nodes, do(task.UninstallRegistry())), do(task.RestoreNodes()))
	}}
}
