package task

import (
	"slices"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/cluster"
	"github.com/mensylisir/kubexm/steps/node"
)

// kind is a step, and the word by which spec.system.keep leaves it out.
type kind struct {
	word string
	step steps.Step
}

// unlessKept takes out what a config wants left as it is.
func unlessKept(c *manifest.Cluster, all ...kind) []steps.Step {
	var out []steps.Step
	for _, k := range all {
		if !slices.Contains(c.Spec.System.Keep, k.word) {
			out = append(out, k.step)
		}
	}
	return out
}

// PrepareNodes makes machines ready to be members of the cluster. Swap and kernel
// settings concern those alone that run a kubelet. What is in the way comes off
// first. A host's name is in /etc/hosts before it is the host's, and packages come before
// settings: those of theirs do not overrule the cluster's.
func PrepareNodes() plan.Task {
	return plan.Task{Name: "prepare-nodes", Plan: func(s plan.Scope) plan.Fragment {
		c := s.Want
		swap := unlessKept(c, kind{manifest.KeepSwap, node.DisableSwap()})
		first := unlessKept(c, kind{manifest.KeepSELinux, node.DisableSELinux()}, kind{manifest.KeepFirewall, node.DisableFirewall()},
			kind{"", node.Names(c)}, kind{manifest.KeepHostname, node.SetHostname()})
		var packages plan.Fragment
		if hasPackages(s) {
			packages = plan.On(s.Hosts(), node.InstallPackages(c))
		}
		return plan.Seq(
			plan.Par(plan.On(nodes(s), swap...), plan.On(s.Hosts(), first...)),
			packages,
			plan.Par(
				plan.On(s.Hosts(), ofSite(c)...),
				plan.On(nodes(s), node.Kernel(c)),
				plan.On(s.Hosts(), node.RaiseLimits()),
			),
		)
	}}
}

// ofSite are the steps that a config asks for by a field of its own.
func ofSite(c *manifest.Cluster) []steps.Step {
	var out []steps.Step
	if len(c.Spec.System.NTPServers) > 0 {
		out = append(out, node.StopOtherClocks(), node.SyncTime(c))
	}
	if c.Spec.System.Timezone != "" {
		out = append(out, node.SetTimezone(c))
	}
	if len(c.Spec.Extra.Resolves) > 0 {
		out = append(out, node.AddResolvers(c))
	}
	return out
}

// RestoreNodes is the inverse of PrepareNodes. What a host's record tells of goes,
// whatever the config says of it by now.
func RestoreNodes() plan.Task {
	return plan.Task{Name: "restore-nodes", Plan: func(s plan.Scope) plan.Fragment {
		if preserves(s) {
			return restore(s, cluster.RemoveRelease()) // of what stays it is on record that it may go
		}
		return restore(s, cluster.RemoveRelease(), node.ForgetRecords())
	}}
}

// RestoreUnused is RestoreNodes for hosts of which kubexm has nothing else on record.
func RestoreUnused() plan.Task {
	return plan.Task{Name: "restore-nodes", Plan: func(s plan.Scope) plan.Fragment { return restore(s, node.ForgetNothing()) }}
}

// CheckUnused looks whether that is so.
func CheckUnused() plan.Task {
	return plan.Task{Name: "check-unused", Plan: func(s plan.Scope) plan.Fragment { return plan.On(s.Hosts(), node.CheckUnused()) }}
}

func restore(s plan.Scope, last ...steps.Step) plan.Fragment {
	c := s.Want
	return plan.Seq(
		plan.Par(
			plan.On(nodes(s), node.ResetKernel(c)),
			plan.On(s.Hosts(), node.RemoveResolvers(c), node.RestoreTimezone(c), node.RestoreTime(c)),
			plan.On(s.Hosts(), node.RestoreLimits()),
		),
		plan.On(s.Hosts(), append([]steps.Step{
			node.RemovePackages(c), node.RestoreOtherClocks(), node.RestoreHostname(), node.RemoveNames(c),
			node.RestoreFirewall(), node.RestoreSwap(), node.RestoreSELinux(),
		}, last...)...),
	)
}
