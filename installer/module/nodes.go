package module

import (
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/task"
)

// CheckHealth checks a cluster before hosts join it.
func CheckHealth() plan.Module {
	return plan.Module{Name: "health", Plan: plan.Sequential(task.CheckHealth())}
}

// PrepareJoining is Foundation for hosts that join a cluster: its registry is filled, and its
// etcd runs.
func PrepareJoining() plan.Module {
	return plan.Module{Name: "foundation", Plan: func(do func(plan.Task) plan.Fragment) plan.Fragment {
		return plan.Seq(
			plan.Par(do(task.PrepareNodes()), do(task.AnnounceHosts())),
			plan.Par(
				equip(do, plan.Fragment{}),
				do(task.InstallEtcdClientFiles()),
				do(task.InstallLoadBalancers()),
			),
		)
	}}
}

// Join joins masters one after another, then the workers in parallel.
func Join() plan.Module {
	return plan.Module{Name: "nodes", Plan: plan.Sequential(
		task.OnAllHosts(task.TrustLoadBalancers()), task.OnAllHosts(task.InstallKubeVIP()), task.HardenMasters(), task.CheckEndpoint(),
		task.JoinMembers(), task.UpdateKubeadm(), task.UpdateEtcdClients(), task.JoinMasters(), task.JoinWorkers(), task.OnAllHosts(task.BalanceOnWorkers()), task.UpdateBalancers(),
	)}
}

// FinishJoining configures the nodes that joined, and writes the cluster record last.
func FinishJoining() plan.Module {
	return plan.Module{Name: "finish", Plan: plan.Sequential(task.Configure(), task.InstallHelm(), task.CheckJoined(), task.Record())}
}

// CheckDeparture checks a cluster before hosts leave it.
func CheckDeparture() plan.Module {
	return plan.Module{Name: "health", Plan: plan.Sequential(task.CheckDeparture())}
}

// Leave takes hosts out of the cluster.
func Leave() plan.Module {
	return plan.Module{Name: "nodes", Plan: plan.Sequential(task.ReleaseHosts(), task.UpdateEtcdClients(), task.RemoveNodes(), task.RemoveMembers(), task.UpdateKubeadm())}
}

// ResetDeparted removes Kubernetes from hosts that are no longer part of a cluster.
func ResetDeparted() plan.Module {
	return plan.Module{Name: "nodes", Plan: plan.Sequential(task.ResetDeparted())}
}

// RestoreDeparted removes everything else from the hosts that left, and restores their previous
// state.
func RestoreDeparted() plan.Module {
	return plan.Module{Name: "removal", Plan: func(do func(plan.Task) plan.Fragment) plan.Fragment {
		return plan.Seq(
			plan.Par(
				do(task.OfDeparting(task.UninstallRuntime())),
				do(task.OfDeparting(task.UninstallLoadBalancers())),
				do(task.OfDeparting(task.RemoveWorkerBalancers())),
				do(task.OfDeparting(task.RemoveEtcdClientFiles())),
				do(task.OfDeparting(task.UninstallEtcd())),
			),
			do(task.OfDeparting(task.RestoreNodes())),
		)
	}}
}

// FinishDeparture waits until the workloads are available again, and writes the cluster record
// last.
func FinishDeparture() plan.Module {
	return plan.Module{Name: "finish", Plan: plan.Sequential(task.CheckWorkloads(), task.RecordMembership())}
}
