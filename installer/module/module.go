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

		engine := in(foundation, task.InstallRuntime())
		programs := in(foundation, task.InstallKubernetes()).AfterOnHosts(engine)
		images := in(foundation, task.PreloadImages()).After(registry).AfterOnHosts(programs)

		// The further masters join one after another, and all nodes through the endpoint.
		masters := plan.Seq(
			in(controlPlane, task.InitControlPlane()).After(store, balancers).AfterOnHosts(images),
			in(controlPlane, task.TrustLoadBalancers()),
			in(controlPlane, task.InstallKubeVIP()),
			in(controlPlane, task.CheckEndpoint()),
			in(controlPlane, task.JoinMasters()).AfterOnHosts(images),
		)

		network := plan.Seq(in(nodes, task.InstallNetwork()), in(nodes, task.InstallDNSCache())).After(masters)
		// A worker gets its own load balancer once it has joined: kubeadm join needs an API server
		// before the kubelet runs a pod. The token for the joins is valid for minutes: it is created
		// when the images are on all workers.
		workers := plan.Then(in(nodes, task.JoinWorkers()), in(nodes, task.BalanceOnWorkers())).After(masters, images)
		return plan.Seq(prepared, plan.Overlap(registry, store, balancers, engine, programs, images, masters, network, workers))
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
