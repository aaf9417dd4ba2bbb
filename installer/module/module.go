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

// Cluster creates the cluster up to its nodes. Once all hosts are prepared, each goes on as soon
// as what it needs is there: the first master is initialized while images still come to others.
func Cluster() plan.Module {
	return plan.Module{Name: "cluster", Plan: func(do func(plan.Task) plan.Fragment) plan.Fragment {
		in := func(part string, t plan.Task) plan.Fragment { return do(t.In(part)) }
		const foundation, controlPlane, nodes = "foundation", "control-plane", "nodes"

		prepared := in(foundation, task.PrepareNodes())
		registry := in(foundation, task.InstallRegistry())
		store := plan.Seq(in(foundation, task.InstallEtcd()), in(foundation, task.InstallEtcdClientFiles()))
		balancers := in(foundation, task.InstallLoadBalancers())

		equipped := equip(func(t plan.Task) plan.Fragment { return in(foundation, t) }, registry)

		// The further masters join one after another, and all nodes through the endpoint.
		masters := plan.Seq(
			in(controlPlane, task.InitControlPlane()).After(store, balancers).AfterOnHosts(equipped),
			in(controlPlane, task.TrustLoadBalancers()),
			in(controlPlane, task.InstallKubeVIP()),
			in(controlPlane, task.CheckEndpoint()),
			in(controlPlane, task.JoinMasters()).AfterOnHosts(equipped),
		)

		network := plan.Seq(in(nodes, task.InstallNetwork()), in(nodes, task.InstallDNSCache())).After(masters)
		// A worker gets its own load balancer once it has joined: kubeadm join needs an API server
		// before the kubelet runs a pod. The token for the joins is valid for minutes: it is created
		// when the images are on all workers.
		workers := plan.Then(in(nodes, task.JoinWorkers()), in(nodes, task.BalanceOnWorkers())).After(masters, equipped)
		return plan.Seq(prepared, plan.Overlap(registry, store, balancers, equipped, masters, network, workers))
	}}
}

// equip brings programs and images to the nodes. The runtime starts and pulls images while the
// programs of Kubernetes come; images come from the registry once it is filled.
func equip(do func(plan.Task) plan.Fragment, registry plan.Fragment) plan.Fragment {
	runtime := do(task.InstallRuntime())
	started := do(task.StartRuntime()).AfterOnHosts(runtime)
	programs := do(task.InstallKubernetes()).AfterOnHosts(runtime)
	images := do(task.PreloadImages()).After(registry).AfterOnHosts(started)
	return plan.Overlap(runtime, started, programs, images)
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
