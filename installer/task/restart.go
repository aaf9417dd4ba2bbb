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

// RestartStore restarts the members of the store one at a time, each while all others are
// healthy, and never one that leads: the last one leads until the others are through, and
// hands over to the first.
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
		return plan.Seq(plan.Part("before", plan.On(members[:1], gate.Store(c))), plan.Roll(members, func(h manifest.Host) plan.Fragment {
			leads := last
			if h.Name == last.Name {
				leads = first
			}
			var hand plan.Fragment
			if len(members) > 1 {
				hand = plan.On(one(leads), etcd.Lead(c))
			}
			then := plan.On(one(h), restart, gate.Store(c))
			if part.StoreOf(c).Kind == part.Stacked { // its API server knows this member alone
				then = plan.On(one(h), restart, gate.Store(c), gate.API(c))
			}
			return plan.Seq(hand, then)
		}))
	}}
}

// RestartControlPlane restarts what kubeadm runs on masters, one master at a time, and the
// next only when the API servers of all are ready.
func RestartControlPlane() plan.Task {
	return plan.Task{Name: "restart-control-plane", Plan: func(s plan.Scope) plan.Fragment {
		return eachMaster(s, kubeadm.RestartAPIServer(), gate.API(s.Want), kubeadm.RestartControllerManager(), kubeadm.RestartScheduler())
	}}
}

// RestartKubelets restarts the kubelets: of masters one at a time, then of workers in
// batches. Pods stay.
func RestartKubelets() plan.Task {
	return plan.Task{Name: "restart-kubelets", Plan: func(s plan.Scope) plan.Fragment {
		return onNodes(s, controlplane.RestartKubelet())
	}}
}

// RestartRuntime restarts the container runtime: of masters one at a time, then of workers
// in batches. Pods stay.
func RestartRuntime() plan.Task {
	return plan.Task{Name: "restart-runtime", Plan: func(s plan.Scope) plan.Fragment {
		return onNodes(s, runtime.Of(s.Want).Restart)
	}}
}

// eachMaster runs steps on one master at a time. Whatever is asked for, no two are changed
// at once, and none while the API server of another is not ready.
func eachMaster(s plan.Scope, ss ...steps.Step) plan.Fragment {
	whole := s.Whole()
	return plan.Roll(s.Role(manifest.RoleMaster), func(h manifest.Host) plan.Fragment {
		return plan.Seq(
			plan.Part("before", plan.On(whole.Role(manifest.RoleMaster), gate.API(s.Want))),
			plan.On(one(h), ss...),
			plan.Part("after", plan.Seq(plan.On(one(h), gate.API(s.Want)), plan.On(s.Lead(), gate.Node(h, "")))),
		)
	})
}

// onNodes runs a step on masters one at a time, then on workers in batches: a batch begins
// when the nodes of the one before are as they have to be.
func onNodes(s plan.Scope, step steps.Step) plan.Fragment {
	return plan.Seq(eachMaster(s, step), plan.Batches(onlyWorkers(s), s.Batch, func(hs []manifest.Host) plan.Fragment {
		return plan.Seq(plan.On(hs, step), plan.Each(hs, func(h manifest.Host) plan.Fragment { return plan.On(s.Lead(), gate.Node(h, "")) }))
	}, nil))
}

func one(h manifest.Host) []manifest.Host { return []manifest.Host{h} }

// ownStore tells whether the store is one that kubexm runs.
func ownStore(s plan.Scope) bool { return part.StoreOf(s.Want).Kind != part.External }
