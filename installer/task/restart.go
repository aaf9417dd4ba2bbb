package task

import (
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/etcd"
	"github.com/mensylisir/kubexm/steps/gate"
	"github.com/mensylisir/kubexm/steps/kubeadm"
	"github.com/mensylisir/kubexm/steps/runtime"
)

// RestartStore restarts the etcd members one at a time, each while all others are healthy, and
// never the leader: the last member leads while the others restart, and then passes leadership
// to the first.
func RestartStore() plan.Task {
	return plan.Task{Name: "restart-etcd", When: ownStore, Plan: func(s plan.Scope) plan.Fragment {
		c := s.Want
		members := s.Only(part.StoreOf(c).Members)
		if len(members) == 0 {
			return plan.Fragment{}
		}
		restart := etcd.Restart(c)
		if part.StoreOf(c).Kind == part.Stacked {
			restart = kubeadm.RestartMember(c)
		}
		first, last := members[0], members[len(members)-1]
		return plan.Seq(plan.QualifyIDs("before", plan.On(members[:1], gate.Store(c))), plan.Roll(members, func(h manifest.Host) plan.Fragment {
			leads := last
			if h.Name == last.Name {
				leads = first
			}
			var hand plan.Fragment
			if len(members) > 1 {
				hand = plan.On(one(leads), etcd.MoveLeader(c))
			}
			then := plan.On(one(h), restart, gate.Store(c))
			if part.StoreOf(c).Kind == part.Stacked { // its API server uses only this member
				then = plan.On(one(h), restart, gate.Store(c), gate.API(c))
			}
			return plan.Seq(hand, then)
		}))
	}}
}

// RestartControlPlane restarts the components that kubeadm runs on masters, one master at a
// time, and the next only when the API servers of all are ready.
func RestartControlPlane() plan.Task {
	return plan.Task{Name: "restart-control-plane", Plan: func(s plan.Scope) plan.Fragment {
		return eachMaster(s, kubeadm.RestartAPIServer(), gate.API(s.Want), kubeadm.RestartControllerManager(), kubeadm.RestartScheduler())
	}}
}

// RestartKubelets restarts the kubelets: of masters one at a time, then of workers in batches.
// Pods keep running, unless the nodes are drained.
func RestartKubelets() plan.Task {
	return plan.Task{Name: "restart-kubelets", Plan: func(s plan.Scope) plan.Fragment {
		return onNodes(s, controlplane.RestartKubelet())
	}}
}

// RestartRuntime restarts the container runtime: of masters one at a time, then of workers in
// batches. Pods keep running, unless the nodes are drained.
func RestartRuntime() plan.Task {
	return plan.Task{Name: "restart-runtime", Plan: func(s plan.Scope) plan.Fragment {
		return onNodes(s, runtime.Of(s.Want).Restart)
	}}
}

// eachMaster runs steps on one master at a time. It never changes two masters concurrently,
// and none while the API server of another is not ready.
func eachMaster(s plan.Scope, ss ...steps.Step) plan.Fragment {
	whole := s.WithoutTargets()
	return plan.Roll(s.Role(manifest.RoleMaster), func(h manifest.Host) plan.Fragment {
		return plan.Seq(
			plan.QualifyIDs("before", plan.On(whole.Role(manifest.RoleMaster), gate.API(s.Want))),
			plan.On(one(h), ss...),
			plan.QualifyIDs("after", plan.Seq(plan.On(one(h), gate.API(s.Want)), plan.On(s.Lead(), gate.Node(h, "")))),
		)
	})
}

// onNodes runs a step on masters one at a time, then on workers in batches: a batch starts
// when the nodes of the previous one are Ready. Nodes are drained before on request.
func onNodes(s plan.Scope, step steps.Step) plan.Fragment {
	if s.Drain.Requested {
		return onDrainedNodes(s, step)
	}
	return plan.Seq(eachMaster(s, step), plan.Batches(onlyWorkers(s), s.Batch, func(hs []manifest.Host) plan.Fragment {
		return plan.Seq(plan.On(hs, step), plan.Each(hs, func(h manifest.Host) plan.Fragment { return plan.On(s.Lead(), gate.Node(h, "")) }))
	}, nil))
}

func one(h manifest.Host) []manifest.Host { return []manifest.Host{h} }

// ownStore reports whether kubexm runs etcd.
func ownStore(s plan.Scope) bool { return part.StoreOf(s.Want).Kind != part.External }
