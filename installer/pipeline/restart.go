package pipeline

import (
	"github.com/mensylisir/kubexm/installer/module"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
)

// restartHelp is the common help of restarts.
const restartHelp = `

kubexm checks the cluster before and after each restart. It waits for up to five minutes until all
components are healthy, reports what it waits for, and on timeout ends with what is missing. Completed
restarts are not undone. The same command repeats all restarts; --resume continues after the restarts
that the last run completed. No bundle is required, and no file of a host is changed.`

// drainHelp is the common help of restarts that may drain nodes.
const drainHelp = `

With --drain, kubexm evicts the pods of each node before its parts restart, and makes the node
schedulable again afterwards. Before the first change it has the API server check the eviction of every
pod, and lists what would prevent a drain. It waits for a PodDisruptionBudget that allows no eviction
until --drain-timeout. Then the node becomes schedulable again, and the error names the pods and the
budget. A node that was cordoned before stays cordoned. The next node, or batch, follows when as much
of every workload is available as before. Without --drain pods keep running.`

// Restarts are the pipelines that restart components of a cluster.
func Restarts() []plan.Pipeline {
	return []plan.Pipeline{RestartStore(), RestartControlPlane(), RestartNodes(), RestartRuntime(), RestartAll()}
}

// RestartStore restarts etcd.
func RestartStore() plan.Pipeline {
	return plan.Pipeline{
		Name: "restart-etcd", Command: []string{"restart", "etcd"}, Group: "Restart components of a cluster in batches",
		Short: "Restart the etcd members, one at a time",
		Long: `Restart the members of the cluster's etcd one after another, whether they run as services on their
hosts or under kubeadm on the masters.

kubexm stops a member only while all members have answered for 15 seconds, no member is a learner, and
no member has an alarm. Leadership is moved first, and the leader is restarted last. An external etcd is
not managed by kubexm and is refused.` + restartHelp,
		Example:           "  kubexm restart etcd -f config.yaml\n  kubexm restart etcd -f config.yaml --dry-run",
		Rolling:           true,
		UnsupportedFields: refuseExternal,
		Modules:           []plan.Module{module.RestartStore()},
	}
}

// RestartControlPlane restarts the control plane components on masters.
func RestartControlPlane() plan.Pipeline {
	return plan.Pipeline{
		Name: "restart-control-plane", Command: []string{"restart", "control-plane"},
		Short: "Restart API servers, controller managers and schedulers",
		Long: `Restart the API server, the controller manager and the scheduler on one master after another. kubexm
changes no master while the API server of another is not ready.` + restartHelp,
		Example: "  kubexm restart control-plane -f config.yaml",
		Rolling: true,
		Modules: []plan.Module{module.RestartControlPlane()},
	}
}

// RestartNodes restarts the kubelets.
func RestartNodes() plan.Pipeline {
	return plan.Pipeline{
		Name: "restart-nodes", Command: []string{"restart", "nodes"},
		Short: "Restart the kubelets of all nodes",
		Long: `Restart the kubelet on every node: first on one master after another, then on the workers in batches
of --batch. A batch begins when the previous one is complete: its nodes are Ready, their kubelets
answer the API server, and the pods of DaemonSets on them are ready.` + drainHelp + restartHelp,
		Example: "  kubexm restart nodes -f config.yaml\n  kubexm restart nodes -f config.yaml --batch 10% --drain",
		Rolling: true, Drains: plan.DrainOnRequest,
		Modules: []plan.Module{module.RehearseDrain(), module.RestartNodes()},
	}
}

// RestartRuntime restarts the container runtime.
func RestartRuntime() plan.Pipeline {
	return plan.Pipeline{
		Name: "restart-runtime", Command: []string{"restart", "runtime"},
		Short: "Restart the container runtime of all nodes",
		Long: `Restart the container runtime on every node: first on one master after another, then on the workers
in batches of --batch. Containers keep running while it restarts. A batch begins when the
previous one is complete: its nodes are Ready, their kubelets answer the API server, and the pods of
DaemonSets on them are ready.` + drainHelp + restartHelp,
		Example: "  kubexm restart runtime -f config.yaml --batch 5\n  kubexm restart runtime -f config.yaml --drain --drain-timeout 30m",
		Rolling: true, Drains: plan.DrainOnRequest,
		Modules: []plan.Module{module.RehearseDrain(), module.RestartRuntime()},
	}
}

// RestartAll restarts all components.
func RestartAll() plan.Pipeline {
	return plan.Pipeline{
		Name: "restart-all", Command: []string{"restart", "all"},
		Short: "Restart etcd, the control plane, the runtime and the kubelets",
		Long: `Restart etcd as "kubexm restart etcd" does, then the control plane, the container runtime and the
kubelets. An external etcd is not managed by kubexm and is left out.` + drainHelp + restartHelp,
		Example: "  kubexm restart all -f config.yaml --batch 2",
		Rolling: true, Drains: plan.DrainOnRequest,
		Modules: append([]plan.Module{module.RehearseDrain(), module.RestartStore(), module.RestartControlPlane()}, module.RestartNodePrograms()...),
	}
}

// refuseExternal refuses an external etcd.
func refuseExternal(c *manifest.Cluster) manifest.Problems {
	if part.StoreOf(c).Kind != part.External {
		return nil
	}
	return manifest.Problems{{
		Path: "spec.etcd.type", Message: "this etcd is external: kubexm does not manage it and has no access to its hosts",
		Advice: "use the tools that manage it; `kubexm restart control-plane` restarts what kubexm installed",
	}}
}
