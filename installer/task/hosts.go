package task

import (
	"slices"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/node"
)

// nodes gives the hosts that run a kubelet, each once, masters first.
func nodes(s plan.Scope) []manifest.Host {
	out := slices.Clone(s.Role(manifest.RoleMaster))
	for _, w := range s.Role(manifest.RoleWorker) {
		if !slices.ContainsFunc(out, func(h manifest.Host) bool { return h.Name == w.Name }) {
			out = append(out, w)
		}
	}
	return out
}

// hasPackages tells whether the bundle holds packages of the hosts' operating systems.
func hasPackages(s plan.Scope) bool { return len(s.Cluster.Spec.Bundle.OperatingSystems) > 0 }

// PrepareNodes makes machines ready to be nodes. Packages come first: kernel
// settings of theirs do not overrule the cluster's then.
func PrepareNodes() plan.Task {
	return plan.Task{Name: "prepare-nodes", Plan: func(s plan.Scope) plan.Fragment {
		var packages plan.Fragment
		if hasPackages(s) {
			packages = plan.On(s.Hosts(), node.InstallPackages(s.Cluster))
		}
		return plan.Seq(packages, plan.Par(
			plan.On(s.Hosts(), node.Names(s.Cluster)),
			plan.On(nodes(s), node.Kernel(s.Cluster)),
		))
	}}
}

// RestoreNodes is the inverse of PrepareNodes. Packages that came go, whatever the
// config says of them by now.
func RestoreNodes() plan.Task {
	return plan.Task{Name: "restore-nodes", Plan: func(s plan.Scope) plan.Fragment {
		last := []steps.Step{node.RemovePackages(s.Cluster), node.ForgetRecords()}
		if preserves(s) {
			last = last[:1] // of what stays it is on record that it may go
		}
		return plan.Seq(
			plan.Par(plan.On(nodes(s), node.ResetKernel(s.Cluster)), plan.On(s.Hosts(), node.RemoveNames(s.Cluster))),
			plan.On(s.Hosts(), last...),
		)
	}}
}
