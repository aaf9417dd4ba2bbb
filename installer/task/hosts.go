package task

import (
	"slices"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/node"
	"github.com/mensylisir/kubexm/steps/preflight"
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

// Preflight looks at every host; it changes nothing.
func Preflight(say preflight.Say) plan.Task {
	return plan.Task{Name: "check-hosts", Plan: func(s plan.Scope) plan.Fragment {
		return plan.Par(
			plan.On(s.Hosts(), preflight.System(say)),
			plan.On(s.Hosts(), preflight.Ports(say)),
			plan.On(s.Hosts(), preflight.Existing(say)),
		)
	}}
}

// PrepareNodes makes machines ready to be nodes.
func PrepareNodes() plan.Task {
	return plan.Task{Name: "prepare-nodes", Plan: func(s plan.Scope) plan.Fragment {
		return plan.Par(
			plan.On(s.Hosts(), node.Names(s.Cluster)),
			plan.On(nodes(s), node.Kernel(s.Cluster)),
		)
	}}
}

// RestoreNodes is the inverse of PrepareNodes.
func RestoreNodes() plan.Task {
	return plan.Task{Name: "restore-nodes", Plan: func(s plan.Scope) plan.Fragment {
		return plan.Seq(
			plan.Par(plan.On(nodes(s), node.ResetKernel(s.Cluster)), plan.On(s.Hosts(), node.RemoveNames(s.Cluster))),
			plan.On(s.Hosts(), node.ForgetRecords()),
		)
	}}
}
