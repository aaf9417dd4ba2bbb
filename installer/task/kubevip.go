package task

import (
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/cluster"
	"github.com/mensylisir/kubexm/steps/loadbalancer"
)

// hasKubeVIP reports whether kube-vip holds the virtual IP on one of the masters.
func hasKubeVIP(s plan.Scope) bool { return part.EndpointOf(s.Want).Front == part.KubeVIPFront }

// InstallKubeVIP gives kube-vip on the first master a kubeconfig of its own, in place of the
// administrator's that kubeadm init needed. The other masters get kube-vip after their joins.
func InstallKubeVIP() plan.Task {
	return plan.Task{Name: "install-kube-vip", When: hasKubeVIP, Plan: func(s plan.Scope) plan.Fragment {
		return plan.Seq(
			plan.On(s.Lead(), cluster.ReadAuthority()),
			plan.On(s.Role(manifest.RoleMaster), loadbalancer.CheckKubeVIPTrust(cluster.Authority)),
			plan.On(s.Lead(), loadbalancer.SignKubeVIP(s.Want), loadbalancer.AllowKubeVIP()),
			plan.On(s.InitialMaster(), kubeVIP(s)...),
		)
	}}
}

// kubeVIP returns the step that installs kube-vip on a master, if the cluster has it.
func kubeVIP(s plan.Scope) []steps.Step {
	if !hasKubeVIP(s) {
		return nil
	}
	return []steps.Step{loadbalancer.InstallKubeVIP(s.Want, cluster.Authority, loadbalancer.KubeVIPClients)}
}

// withoutKubeVIP returns the step that removes kube-vip from a master, if the cluster has it.
func withoutKubeVIP(s plan.Scope) []steps.Step {
	if !hasKubeVIP(s) {
		return nil
	}
	return []steps.Step{loadbalancer.UninstallKubeVIP(s.Want)}
}
