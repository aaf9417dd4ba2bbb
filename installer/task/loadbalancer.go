package task

import (
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps/cluster"
	"github.com/mensylisir/kubexm/steps/loadbalancer"
	"github.com/mensylisir/kubexm/steps/node"
)

// hasBalancers reports whether kubexm runs load balancers on hosts of their role.
func hasBalancers(s plan.Scope) bool { return part.EndpointOf(s.Want).Front == part.HostsFront }

// InstallLoadBalancers configures the load balancers, before the first API server: kubeadm
// waits for it at the virtual IP.
func InstallLoadBalancers() plan.Task {
	return plan.Task{Name: "install-load-balancers", When: hasBalancers, Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.Role(manifest.RoleLoadBalancer), loadbalancer.Install(s.Want))
	}}
}

// TrustLoadBalancers gives the load balancers what they request /readyz with, once the
// cluster's CA exists.
func TrustLoadBalancers() plan.Task {
	return plan.Task{Name: "trust-load-balancers", When: checksReady, Plan: func(s plan.Scope) plan.Fragment {
		balancers := s.Role(manifest.RoleLoadBalancer)
		return plan.Seq(
			plan.On(s.Lead(), cluster.ReadAuthority()),
			plan.On(balancers, loadbalancer.CheckTrust(cluster.Authority)),
			plan.On(s.Lead(), loadbalancer.SignProbe(s.Want)),
			plan.On(balancers, loadbalancer.Trust(s.Want, cluster.Authority, loadbalancer.Probes)),
		)
	}}
}

// checksReady reports whether TrustLoadBalancers has something to do.
func checksReady(s plan.Scope) bool { return hasBalancers(s) && loadbalancer.ChecksReady(s.Want) }

// UninstallLoadBalancers is the inverse of InstallLoadBalancers.
func UninstallLoadBalancers() plan.Task {
	return plan.Task{Name: "uninstall-load-balancers", When: hasBalancers, Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.Role(manifest.RoleLoadBalancer), loadbalancer.Uninstall(s.Want))
	}}
}

// workersBalance reports whether workers run a load balancer for the clients on themselves.
func workersBalance(s plan.Scope) bool {
	return part.EndpointOf(s.Want).OnNodes != "" && len(onlyWorkers(s)) > 0
}

// BalanceOnWorkers installs a load balancer on each worker that has joined, and then points the
// worker at it.
func BalanceOnWorkers() plan.Task {
	return plan.Task{Name: "balance-on-workers", When: workersBalance, Plan: func(s plan.Scope) plan.Fragment {
		workers := onlyWorkers(s)
		trust := plan.On(s.Lead(), cluster.ReadAuthority())
		if loadbalancer.ChecksReadyOnWorkers(s.Want) {
			trust = plan.Seq(trust, plan.On(workers, loadbalancer.CheckWorkerTrust(cluster.Authority)), plan.On(s.Lead(), loadbalancer.SignWorkerProbe(s.Want)))
		}
		return plan.Seq(trust, plan.On(workers,
			loadbalancer.InstallOnWorker(s.Want, cluster.Authority, loadbalancer.WorkerProbes),
			cluster.WaitWorkerBalancer(s.Want),
			node.AimAtWorkerBalancer(s.Want),
			cluster.RenewWorkerProxy(s.Want),
		))
	}}
}

// RemoveWorkerBalancers removes the files of the load balancers on workers. Their pods end when
// a worker is reset.
func RemoveWorkerBalancers() plan.Task {
	return plan.Task{Name: "remove-worker-balancers", When: workersBalance, Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(onlyWorkers(s), loadbalancer.UninstallFromWorker(s.Want))
	}}
}
