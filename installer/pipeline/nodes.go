package pipeline

import (
	"github.com/mensylisir/kubexm/installer/module"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
)

// AddNodes adds hosts to a cluster.
func AddNodes() plan.Pipeline {
	return plan.Pipeline{
		Name: "node-add", Command: []string{"node", "add"}, Group: "Add hosts to a cluster, or delete them", Args: plan.HostNames,
		Short: "Add hosts of the config to the cluster",
		Long: `Add hosts to an existing cluster: those whose names are given, or all hosts of the config that are
not part of the cluster. List them in spec.hosts and spec.roleGroups first.

kubexm checks the new hosts as "kubexm preflight" does, also against all other hosts. It prepares them,
installs the release of the cluster from the bundle, and joins them: masters one after another, then all
workers in parallel. The names of new hosts are written on all hosts. Load balancers forward to new
masters. The command ends when the new nodes are Ready and the pods of DaemonSets run on them.

Nothing else of a changed config is applied, and other nodes keep running. The bundle must contain the
versions of the cluster: this command upgrades nothing. A master with an etcd member is added only while
all members are healthy. An even number of members is refused without --allow-even.

A host that fails is restored as far as its last step; hosts that have joined stay. The same command
continues. "kubexm node delete" is the inverse. docs/nodes.md has details.`,
		Example: `  kubexm node add -f config.yaml --bundle demo.tar.zst \
    --key cosign.pub --dry-run
  kubexm node add w4 w5 -f config.yaml --bundle demo.tar.zst \
    --key cosign.pub`,
		Bundle: plan.BundleNeeded, WritesRecord: true, Membership: plan.AddsHosts,
		Modules: []plan.Module{
			module.Preflight(), module.CheckHealth(), module.PrepareJoining(), module.Join(), module.FinishJoining(),
		},
	}
}

// DeleteNodes deletes hosts from a cluster.
func DeleteNodes() plan.Pipeline {
	return plan.Pipeline{
		Name: "node-delete", Command: []string{"node", "delete"}, Args: plan.HostNames,
		Short: "Delete hosts from the cluster and restore them",
		Long: `Take hosts out of a cluster, one after another, and restore their previous state. The hosts may still
be listed in the config, or not any more: the cluster record is sufficient.

Before anything is changed, kubexm checks that the other API servers and etcd members are healthy. It asks
the API server whether the pods of the hosts may be evicted, and lists all that block it. Then it drains
each node as "kubectl drain" does, removes Kubernetes and everything that kubexm installed, and deletes the
node. For a master it changes the load balancers first, and removes the etcd member. The first master can
be deleted as well. The command ends when all workloads are as available as before.

--dead deletes hosts that do not answer any more. kubexm does not connect to them. If such a host returns,
do not connect it to the network of the cluster: it still runs what it ran. An install or "node add" that
reaches the host cleans it first.

At the end the command prints what to remove from the config; --write edits the file of -f. The last
master, the registry host and a host that others depend on are refused.`,
		Example: "  kubexm node delete w3 -f config.yaml --dry-run\n  kubexm node delete w3 -f config.yaml --yes\n  kubexm node delete m1 -f config.yaml --dead --yes --write",
		Confirmation: func(*manifest.Cluster) string {
			return "deletes hosts from it and everything on them that belongs to the cluster"
		},
		Membership: plan.RemovesHosts, Drains: plan.DrainAlways,
		Modules: []plan.Module{
			module.CheckDeparture(), module.Leave(), module.RestoreDeparted(), module.FinishDeparture(),
		},
	}
}

// CleanNodes removes everything of a cluster from hosts that were deleted from it while they did
// not answer. It has no command: an installation and AddNodes run it on hosts that return.
func CleanNodes() plan.Pipeline {
	return plan.Pipeline{Name: "node-clean", HostsOnly: true, Modules: []plan.Module{module.ResetDeparted(), module.RestoreDeparted()}}
}
