package task

import (
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps/cluster"
	"github.com/mensylisir/kubexm/steps/loadbalancer"
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
