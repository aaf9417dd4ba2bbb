package pipeline

import (
	"github.com/mensylisir/kubexm/installer/module"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
)

// restartHelp is what restarts say of how they go about it.
const restartHelp = `

Before each of them the cluster is looked at, and after it: kubexm waits for up to five minutes until
everything is as it has to be, says what it waits for, and ends with what is missing. What was restarted
by then stays so. The same command does all of it again; --resume goes on after what the last run did.
No bundle is needed, nothing is drained, and no file is changed.`

// Restarts are the pipelines that restart parts of a cluster.
func Restarts() []plan.Pipeline {
	return []plan.Pipeline{RestartStore(), RestartControlPlane(), RestartNodes(), RestartRuntime(), RestartAll()}
}

// RestartStore restarts etcd.
func RestartStore() plan.Pipeline {
	return plan.Pipeline{
		Name: "restart-etcd", Command: []string{"restart", "etcd"}, Group: "Restart parts of a cluster, some at a time",
		Short: "Restart the members of etcd, one at a time",
		Long: `Restart the members of the cluster's etcd one after another, whether they are services of their hosts
or run on the masters.

A member is stopped only while all members have answered for 15 seconds, none of them learns, and
none has an alarm. Leadership is moved first, and the leader is the last. An etcd that exists already is
not kubexm's, and is refused.` + restartHelp,
		Example: "  kubexm restart etcd -f config.yaml\n  kubexm restart etcd -f config.yaml --dry-run",
		Rolls:   true,
		Refuses: notOurs,
		Modules: []plan.Module{module.RestartStore()},
	}
}

// RestartControlPlane restarts what runs on masters alone.
func RestartControlPlane() plan.Pipeline {
	return plan.Pipeline{
		Name: "restart-control-plane", Command: []string{"restart", "control-plane"},
		Short: "Restart API servers, controller managers and schedulers",
		Long: `Restart the API server, the controller manager and the scheduler of one master after another. No
master is changed while the API server of another is not ready.` + restartHelp,
		Example: "  kubexm restart control-plane -f config.yaml",
		Rolls:   true,
		Modules: []plan.Module{module.RestartControlPlane()},
	}
}

// RestartNodes restarts the kubelets.
func RestartNodes() plan.Pipeline {
	return plan.Pipeline{
		Name: "restart-nodes", Command: []string{"restart", "nodes"},
		Short: "Restart the kubelets of all nodes; pods stay",
		Long: `Restart the kubelet of every node: of one master after another, then of as many workers at once as
--batch says. A batch begins when every node of the one before is Ready, its kubelet answers the API
server, and the pods of DaemonSets on it are ready.` + restartHelp,
		Example: "  kubexm restart nodes -f config.yaml\n  kubexm restart nodes -f config.yaml --batch 10%",
		Rolls:   true,
		Modules: []plan.Module{module.RestartNodes()},
	}
}

// RestartRuntime restarts the container runtime.
func RestartRuntime() plan.Pipeline {
	return plan.Pipeline{
		Name: "restart-runtime", Command: []string{"restart", "runtime"},
		Short: "Restart the container runtime of all nodes; pods stay",
		Long: `Restart the container runtime of every node: of one master after another, then of as many workers at
once as --batch says. Containers go on while it restarts. A batch begins when every node of the one
before is Ready, its kubelet answers the API server, and the pods of DaemonSets on it are ready.` + restartHelp,
		Example: "  kubexm restart runtime -f config.yaml --batch 5",
		Rolls:   true,
		Modules: []plan.Module{module.RestartRuntime()},
	}
}

// RestartAll restarts all of them.
func RestartAll() plan.Pipeline {
	return plan.Pipeline{
		Name: "restart-all", Command: []string{"restart", "all"},
		Short: "Restart etcd, the control plane, the runtime and the kubelets",
		Long: `Restart etcd as "kubexm restart etcd" does, then the control plane, the container runtime and the
kubelets. An etcd that exists already is not kubexm's, and is left out.` + restartHelp,
		Example: "  kubexm restart all -f config.yaml --batch 2",
		Rolls:   true,
		Modules: []plan.Module{module.RestartStore(), module.RestartControlPlane(), module.RestartRuntime(), module.RestartNodes()},
	}
}

// notOurs refuses a store that somebody else runs.
func notOurs(c *manifest.Cluster) manifest.Problems {
	if part.StoreOf(c).Kind != part.External {
		return nil
	}
	return manifest.Problems{{
		Path: "spec.etcd.type", Message: "this etcd is not kubexm's: it exists already, and kubexm reaches none of its hosts",
		Advice: "restart it the way it is run; `kubexm restart control-plane` restarts what kubexm made",
	}}
}
