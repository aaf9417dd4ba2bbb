package pipeline

import (
	"slices"

	"github.com/mensylisir/kubexm/installer/module"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
)

// Store are the pipelines that operate etcd.
func Store() []plan.Pipeline {
	return []plan.Pipeline{AddEtcdMembers(), RemoveEtcdMembers(), MoveEtcdLeader(), DefragmentEtcd(), DisarmEtcd(), ReplaceEtcdMember()}
}

// AddEtcdMembers adds hosts that are only etcd members.
func AddEtcdMembers() plan.Pipeline {
	p := AddNodes()
	p.Name, p.Command, p.Group, p.TargetHosts, p.UnsupportedFields = "add-etcd-member", []string{"etcd", "add"}, "", membersAlone, membersWithMasters
	p.Short = "Add hosts of the config as etcd members"
	p.Long = `Add hosts to an existing cluster that are etcd members and nothing else: those whose names are given, or
all such hosts of the config that are not part of the cluster. List them in spec.hosts and
spec.roleGroups.etcd first. It is "kubexm node add" for such hosts; a master with a member is added by that.

kubexm checks and prepares the new hosts, and adds one member after another while all others are healthy.
A new member is a learner, which does not vote, until it has the data of the others. If it does not get
them within ten minutes, it is removed again. The members that exist are not restarted. In the end the API
servers get the new list of members: one restarts at a time, each only while all others are ready.

An even number of members is refused without --allow-even. Members under kubeadm and an external etcd are
refused.`
	p.Example = `  kubexm etcd add -f config.yaml --bundle demo.tar.zst \
    --key cosign.pub --dry-run
  kubexm etcd add e4 e5 -f config.yaml --bundle demo.tar.zst \
    --key cosign.pub`
	return p
}

// RemoveEtcdMembers removes hosts that are only etcd members.
func RemoveEtcdMembers() plan.Pipeline {
	p := DeleteNodes()
	p.Name, p.Command, p.TargetHosts, p.UnsupportedFields, p.Drains = "remove-etcd-member", []string{"etcd", "remove"}, membersAlone, membersWithMasters, plan.NoDrain
	p.Short = "Remove etcd members with their hosts"
	p.Long = `Take hosts out of a cluster that are etcd members and nothing else, and restore their previous state. It
is "kubexm node delete" for such hosts; a master with a member is deleted by that.

The API servers forget the members first: one restarts at a time, each only while all others are ready.
Then kubexm removes one member after another, while all that stay are healthy. A leader passes the
leadership on before. The data of a removed member is deleted.

--dead removes members whose hosts do not answer any more. If most members are lost, the command is
refused: then only a snapshot helps. At the end the command prints what to remove from the config; --write
edits the file of -f. The last member is refused, and so are members under kubeadm and an external etcd.`
	p.Example = "  kubexm etcd remove e4 e5 -f config.yaml --dry-run\n  kubexm etcd remove e4 e5 -f config.yaml --yes\n  kubexm etcd remove e2 -f config.yaml --dead --yes --write"
	p.Confirmation = func(*manifest.Cluster) string {
		return "removes etcd members from it, and everything on their hosts that belongs to the cluster"
	}
	return p
}

// membersAlone returns the hosts that are etcd members and nothing else.
func membersAlone(c *manifest.Cluster) []manifest.Host {
	return slices.DeleteFunc(slices.Clone(members(c)), func(h manifest.Host) bool {
		return slices.ContainsFunc(c.RolesOf(h.Name), func(role string) bool { return role != manifest.RoleEtcd })
	})
}

// membersWithMasters refuses an etcd whose members are not services of their hosts.
func membersWithMasters(c *manifest.Cluster) manifest.Problems {
	if part.StoreOf(c).Kind != part.Stacked {
		return refuseExternal(c)
	}
	return manifest.Problems{{
		Path: "spec.etcd.type", Message: "kubeadm runs the etcd members, one on each master: a member joins and leaves with its master",
		Advice: "run kubexm node add or kubexm node delete",
	}}
}

// MoveEtcdLeader transfers the leadership of etcd.
func MoveEtcdLeader() plan.Pipeline {
	return plan.Pipeline{
		Name: "move-etcd-leader", Command: []string{"etcd", "move-leader"}, Args: plan.OneHostName, TargetHosts: members,
		Short: "Make the etcd member of a host the leader",
		Long: `Transfer the leadership of etcd to the member on a host, for example before another host is serviced.
No election is needed, so no request waits. Both kinds of members are supported: services of their hosts
and pods of kubeadm. An external etcd is refused.

kubexm transfers the leadership only while all members have answered for 15 seconds.`,
		Example:           "  kubexm etcd move-leader e2 -f config.yaml",
		Rolling:           true,
		UnsupportedFields: refuseExternal,
		Modules:           []plan.Module{module.MoveLeader()},
	}
}

// DefragmentEtcd frees the unused space of etcd's databases.
func DefragmentEtcd() plan.Pipeline {
	return plan.Pipeline{
		Name: "defragment-etcd", Command: []string{"etcd", "defrag"}, Flags: []plan.Flag{{Name: "all", Usage: "include everything; every member is defragmented"}},
		Short: "Free the unused space of the etcd databases, one member at a time",
		Long: `Defragment the database of each etcd member of which more than 30 % are unused. "kubexm etcd status"
shows SIZE and IN USE. If etcd has the alarm NOSPACE, or with --all, every member is defragmented.

A member answers nothing while it is defragmented. So kubexm defragments one member at a time, only
while all members have answered for 15 seconds. The leader first passes the leadership to the last
member, which is defragmented last. Then kubexm disarms the alarms that are resolved. An alarm of a
database that still reaches spec.etcd.quotaBackendBytes stays, and the command fails. An external etcd
is refused.`,
		Example:           "  kubexm etcd defrag -f config.yaml --dry-run\n  kubexm etcd defrag -f config.yaml\n  kubexm etcd defrag -f config.yaml --all",
		Rolling:           true,
		UnsupportedFields: refuseExternal,
		Modules:           []plan.Module{module.DefragmentStore()},
	}
}

// DisarmEtcd disarms etcd's alarms. Its command lists them unless the flag disarm is given.
func DisarmEtcd() plan.Pipeline {
	return plan.Pipeline{
		Name: "disarm-etcd", Command: []string{"etcd", "alarm"},
		Short: "List the alarms of etcd, or disarm them",
		Long: `List the alarms of the etcd members; the exit code is 3 if there are any. With alarm NOSPACE etcd rejects
all writes, because a database has reached spec.etcd.quotaBackendBytes. With CORRUPT the data of a
member differs from that of the others.

--disarm disarms the alarms once their cause is gone. It is refused while a database still reaches its
quota: run "kubexm etcd defrag". It is also refused while a member with corrupt data was not replaced.
An external etcd is refused.`,
		Example:           "  kubexm etcd alarm -f config.yaml\n  kubexm etcd alarm -f config.yaml --disarm",
		Rolling:           true,
		UnsupportedFields: refuseExternal,
		Modules:           []plan.Module{module.DisarmAlarms()},
	}
}

// ReplaceEtcdMember replaces a member with its host.
func ReplaceEtcdMember() plan.Pipeline {
	return plan.Pipeline{
		Name: "replace-etcd-member", Command: []string{"etcd", "replace"}, Args: plan.OneHostName, TargetHosts: members,
		Short: "Replace an etcd member whose data is lost or corrupt",
		Long: `Remove the member of a host from etcd, delete its data, and add it again under the same name and address.
The new member is a learner, which does not vote, until it has the data of the others. If it does not get
them within ten minutes, it is removed again.

All other members must be healthy. If most members have lost their data, the command is refused: then only
a snapshot helps. A host that lost more than etcd's data, such as a new machine, is installed and replaced
by "kubexm install". Members under kubeadm are refused: delete the dead master, and add it again.`,
		Example:           "  kubexm etcd replace e2 -f config.yaml --dry-run\n  kubexm etcd replace e2 -f config.yaml --yes",
		Rolling:           true,
		UnsupportedFields: onlyServices,
		Modules:           []plan.Module{module.ReplaceMember()},
	}
}

// onlyServices refuses an etcd whose members are not services of their hosts.
func onlyServices(c *manifest.Cluster) manifest.Problems {
	if part.StoreOf(c).Kind != part.Stacked {
		return refuseExternal(c)
	}
	return manifest.Problems{{
		Path: "spec.etcd.type", Message: "kubeadm runs the etcd members, one on each master: a member is replaced together with its master",
		Advice: "run kubexm node delete HOST --dead, then kubexm node add HOST",
	}}
}

// members returns the hosts of the etcd members.
func members(c *manifest.Cluster) []manifest.Host { return part.StoreOf(c).Members }
