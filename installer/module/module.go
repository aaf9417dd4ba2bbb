// Package module says which tasks make one part of a cluster, and which of them
// may run side by side.
//
// It may import installer/plan, installer/task and steps' vocabulary.
package module

import (
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/task"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubernetes"
	"github.com/mensylisir/kubexm/steps/preflight"
)

// Preflight looks at hosts before anything changes; the checks named in skip are
// left out.
func Preflight(o preflight.Options, skip []string) plan.Module {
	return plan.Module{Name: "preflight", Tasks: []plan.Task{task.Preflight(o), task.CheckEtcd(o.Say), task.CheckRegistry(o.Say), task.CheckKept(o.Say)},
		Join: func(f []plan.Fragment) plan.Fragment { return plan.Par(f...).Without(skip...) }}
}

// Foundation prepares the nodes, installs the runtime and Kubernetes' own
// programs, and meanwhile fills the registry and brings up the store; then the
// images come to the nodes.
func Foundation() plan.Module {
	return plan.Module{
		Name:  "foundation",
		Tasks: []plan.Task{task.PrepareNodes(), task.InstallRegistry(), task.InstallRuntime(), task.InstallKubernetes(), task.PreloadImages(), task.InstallEtcd(), task.GiveEtcdKeys()},
		Join: func(f []plan.Fragment) plan.Fragment {
			prepare, registry, runtime, kubernetes, preload, etcd, keys := f[0], f[1], f[2], f[3], f[4], f[5], f[6]
			return plan.Seq(prepare, plan.Par(plan.Seq(plan.Par(registry, plan.Seq(runtime, kubernetes)), preload), plan.Seq(etcd, keys)))
		},
	}
}

// ControlPlane makes the first master, and joins the others to it. All nodes that join
// do so through the endpoint.
func ControlPlane(say func(steps.Finding)) plan.Module {
	return plan.Module{Name: "control-plane", Tasks: []plan.Task{task.InitControlPlane(), task.CheckEndpoint(say), task.JoinMasters()}}
}

// Nodes installs the pod network and joins the workers, side by side.
func Nodes() plan.Module {
	return plan.Module{Name: "nodes", Tasks: []plan.Task{task.InstallNetwork(), task.JoinWorkers()},
		Join: func(f []plan.Fragment) plan.Fragment { return plan.Par(f...) }}
}

// Finish is the end of a creation: the cluster is configured, the add-ons are
// installed, and what was applied is recorded last.
func Finish(applied func(*steps.Host) kubernetes.Applied) plan.Module {
	return plan.Module{Name: "finish", Tasks: []plan.Task{task.Configure(), task.InstallAddons(), task.Record(applied)}}
}

// Drain takes the add-ons away and moves the pods off the nodes.
func Drain() plan.Module {
	return plan.Module{Name: "drain", Tasks: []plan.Task{task.RemoveAddons(), task.DrainNodes()}}
}

// Removal takes everything away, in the reverse order of a creation. The store
// goes when nobody asks it any more.
func Removal(say func(steps.Finding)) plan.Module {
	return plan.Module{
		Name: "removal",
		Tasks: []plan.Task{
			task.KeepKeys(), task.ResetNodes(say), task.UninstallRuntime(), task.UninstallRegistry(say), task.RestoreNodes(), task.TakeEtcdKeys(), task.UninstallEtcd(), task.NoteEtcd(say),
		},
		Join: func(f []plan.Fragment) plan.Fragment {
			keep, reset, runtime, registry, restore, keys, etcd, note := f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7]
			return plan.Seq(keep, plan.Par(plan.Seq(reset, plan.Par(runtime, plan.Seq(keys, etcd), note)), registry), restore)
		},
	}
}
