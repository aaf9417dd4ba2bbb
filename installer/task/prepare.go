package task

import (
	"slices"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/cluster"
	"github.com/mensylisir/kubexm/steps/loadbalancer"
	"github.com/mensylisir/kubexm/steps/node"
)

// kind is a step with the word of spec.system.keep that leaves it out.
type kind struct {
	word string
	step steps.Step
}

// unlessKept leaves out the steps that a config excludes.
func unlessKept(c *manifest.Cluster, all ...kind) []steps.Step {
	var out []steps.Step
	for _, k := range all {
		if !slices.Contains(c.Spec.System.Keep, k.word) {
			out = append(out, k.step)
		}
	}
	return out
}

// PrepareNodes prepares machines to become hosts of the cluster. Swap and kernel settings
// concern only hosts that run a kubelet. What conflicts with Kubernetes is turned off first. A
// host's name is in /etc/hosts before it is set, and packages are installed before settings,
// so that their defaults do not override the cluster's.
func PrepareNodes() plan.Task {
	return plan.Task{Name: "prepare-nodes", Plan: func(s plan.Scope) plan.Fragment {
		c := s.Want
		swap := unlessKept(c, kind{manifest.KeepSwap, node.DisableSwap()})
		first := unlessKept(c, kind{manifest.KeepSELinux, node.DisableSELinux()}, kind{manifest.KeepFirewall, node.DisableFirewall()},
			kind{"", node.Names(c)}, kind{manifest.KeepHostname, node.SetHostname()})
		var packages plan.Fragment
		if hasPackages(s) {
			packages = plan.On(s.Hosts(), node.InstallPackages(c))
			if hasBalancers(s) {
				packages = plan.Seq(plan.On(s.Role(manifest.RoleLoadBalancer), loadbalancer.MaskServices(c)), packages)
			}
		}
		return plan.Seq(
			plan.Par(plan.On(nodes(s), swap...), plan.On(s.Hosts(), first...)),
			packages,
			plan.Par(
				plan.On(s.Hosts(), ofSite(c)...),
				plan.On(nodes(s), append(ofNetwork(c, node.LeaveInterfaces), node.Kernel(c))...),
				plan.On(nodes(s), ofStorage(c, node.MakeVolumeFolder)...),
				plan.On(s.Hosts(), node.RaiseLimits()),
			),
		)
	}}
}

// ofSite returns the steps for optional fields of the config.
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

// ofNetwork returns a step for a pod network whose interfaces NetworkManager must leave alone.
func ofNetwork(c *manifest.Cluster, step func(*manifest.Cluster) steps.Step) []steps.Step {
	if len(part.NetworkOf(c).Unmanaged) == 0 {
		return nil
	}
	return []steps.Step{step(c)}
}

// ofStorage returns a step for volumes from a folder of each node.
func ofStorage(c *manifest.Cluster, step func(*manifest.Cluster) steps.Step) []steps.Step {
	if !part.HasOpenEBS(c) {
		return nil
	}
	return []steps.Step{step(c)}
}

// RestoreNodes is the inverse of PrepareNodes. It undoes what is in a host's record, even if
// the config differs by now.
func RestoreNodes() plan.Task {
	return plan.Task{Name: "restore-nodes", Plan: func(s plan.Scope) plan.Fragment {
		if preserves(s) {
			return restore(s, cluster.RemoveRelease()) // records of preserved data stay
		}
		return restore(s, cluster.RemoveRelease(), node.ForgetRecords())
	}}
}

// RestoreUnused is RestoreNodes for hosts on which kubexm has no other records.
func RestoreUnused() plan.Task {
	return plan.Task{Name: "restore-nodes", Plan: func(s plan.Scope) plan.Fragment { return restore(s, node.ForgetNothing()) }}
}

// CheckUnused checks that no cluster is installed on the hosts.
func CheckUnused() plan.Task {
	return plan.Task{Name: "check-unused", Plan: func(s plan.Scope) plan.Fragment { return plan.On(s.Hosts(), node.CheckUnused()) }}
}

func restore(s plan.Scope, last ...steps.Step) plan.Fragment {
	c := s.Want
	packages := []steps.Step{node.RemovePackages(c)}
	var balancers plan.Fragment
	if hasBalancers(s) { // what their services leave behind is theirs until the packages are gone
		balancers = plan.Seq(plan.On(s.Hosts(), packages...), plan.On(s.Role(manifest.RoleLoadBalancer), loadbalancer.UnmaskServices(c)))
		packages = nil
	}
	var volumes []steps.Step
	if !preserves(s) {
		volumes = ofStorage(c, node.RemoveVolumes)
	}
	return plan.Seq(
		plan.Par(
			plan.On(nodes(s), volumes...),
			plan.On(nodes(s), append(ofNetwork(c, node.ManageInterfaces), node.ResetKernel(c))...),
			plan.On(s.Hosts(), node.RemoveResolvers(c), node.RestoreTimezone(c), node.RestoreTime(c)),
			plan.On(s.Hosts(), node.RestoreLimits()),
		),
		balancers,
		plan.On(s.Hosts(), slices.Concat(packages, []steps.Step{
			node.RestoreOtherClocks(), node.RestoreHostname(), node.RemoveNames(c),
			node.RestoreFirewall(), node.RestoreSwap(), node.RestoreSELinux(),
		}, last)...),
	)
}
