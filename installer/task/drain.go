package task

import (
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/cluster"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/gate"
	"github.com/mensylisir/kubexm/steps/runtime"
)

// RehearseDrain checks whether all nodes can be drained, before anything is changed, if a drain
// is requested.
func RehearseDrain() plan.Task {
	return plan.Task{Name: "rehearse-drain", When: drains, Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.Lead(), cluster.RehearseDrain(nodes(s), drainOptions(s)))
	}}
}

// RestartDrainedNodes restarts the container runtime and the kubelet of each node while the node
// is drained.
func RestartDrainedNodes() plan.Task {
	return plan.Task{Name: "restart-nodes", When: drains, Plan: func(s plan.Scope) plan.Fragment {
		return onDrainedNodes(s, runtime.Of(s.Want).Restart, controlplane.RestartKubelet())
	}}
}

// Undrained leaves t out if nodes are drained.
func Undrained(t plan.Task) plan.Task {
	t.When = func(s plan.Scope) bool { return !drains(s) }
	return t
}

func drains(s plan.Scope) bool { return s.Drain.Requested }

func drainOptions(s plan.Scope) cluster.DrainOptions {
	return cluster.DrainOptions{Timeout: s.Drain.Timeout, Force: s.Drain.Force}
}

// onDrainedNodes runs steps on masters one at a time, then on workers in batches, each while it is
// drained. A batch starts when as much of every workload is available as before the first
// drain. It never changes a master while the API server of another is not ready.
func onDrainedNodes(s plan.Scope, ss ...steps.Step) plan.Fragment {
	whole := s.WithoutTargets()
	masters := plan.Roll(s.Role(manifest.RoleMaster), func(h manifest.Host) plan.Fragment {
		return plan.Seq(
			plan.QualifyIDs("before", plan.On(whole.Role(manifest.RoleMaster), gate.API(s.Want))),
			plan.On(s.Lead(), cluster.UncordonOthers(one(h))),
			whileDrained(s, h, plan.Seq(plan.On(one(h), ss...), plan.QualifyIDs("after", plan.On(one(h), gate.API(s.Want))))),
			plan.On(s.Lead(), gate.Workloads()),
		)
	})
	workers := plan.Batches(onlyWorkers(s), s.Batch, func(hs []manifest.Host) plan.Fragment {
		return plan.Seq(
			plan.On(s.Lead(), cluster.UncordonOthers(hs)),
			plan.Each(hs, func(h manifest.Host) plan.Fragment { return whileDrained(s, h, plan.On(one(h), ss...)) }),
			plan.On(s.Lead(), gate.Workloads()),
		)
	}, nil)
	return plan.Seq(plan.On(s.Lead(), gate.NoteWorkloads()), masters, workers, plan.On(s.Lead(), gate.ForgetWorkloads()))
}

// whileDrained runs f on a node between its drain and its end. If any of it fails, the node
// gets the state before the drain, too.
func whileDrained(s plan.Scope, h manifest.Host, f plan.Fragment) plan.Fragment {
	uncordon := func() plan.Fragment { return plan.On(s.Lead(), cluster.UncordonNode(h)) }
	return plan.GuardedFor(h, plan.Seq(
		plan.On(s.Lead(), cluster.DrainNode(h, drainOptions(s))),
		f,
		plan.On(s.Lead(), gate.Node(h, "")),
		uncordon(),
	), uncordon())
}
