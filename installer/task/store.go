package task

import (
	"slices"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps/etcd"
	"github.com/mensylisir/kubexm/steps/gate"
	"github.com/mensylisir/kubexm/steps/kubeadm"
)

// FlagAll is the flag that defragments every member.
const FlagAll = "all"

// MoveLeader transfers the leadership of etcd to the target.
func MoveLeader() plan.Task {
	return plan.Task{Name: "move-etcd-leader", When: ownStore, Plan: func(s plan.Scope) plan.Fragment {
		c := s.Want
		return plan.Roll(s.Only(part.StoreOf(c).Members), func(h manifest.Host) plan.Fragment {
			return plan.Seq(
				plan.QualifyIDs("before", plan.On(one(h), gate.Store(c))),
				plan.On(one(h), etcd.MoveLeader(c)),
				plan.QualifyIDs("after", plan.On(one(h), gate.Store(c))),
			)
		})
	}}
}

// DefragmentStore defragments the etcd members one at a time, each while all others are
// healthy, and never the leader. Then it disarms the alarms that this has resolved.
func DefragmentStore() plan.Task {
	return plan.Task{Name: "defragment-etcd", When: ownStore, Plan: func(s plan.Scope) plan.Fragment {
		c := s.Want
		members := s.Only(part.StoreOf(c).Members)
		if len(members) == 0 {
			return plan.Fragment{}
		}
		return plan.Seq(
			plan.QualifyIDs("before", plan.On(members[:1], gate.StoreToDefragment(c))),
			plan.On(members, etcd.CheckFragmented(c, s.Has(FlagAll))),
			plan.Roll(members, func(h manifest.Host) plan.Fragment {
				return plan.On(one(h), etcd.Defragment(c), gate.StoreToDefragment(c))
			}),
			plan.On(members[:1], etcd.Disarm(c), gate.Store(c)),
		)
	}}
}

// DisarmAlarms disarms the alarms of etcd whose cause no longer exists.
func DisarmAlarms() plan.Task {
	return plan.Task{Name: "disarm-etcd", When: ownStore, Plan: func(s plan.Scope) plan.Fragment {
		members := s.Only(part.StoreOf(s.Want).Members)
		return plan.On(members[:min(1, len(members))], etcd.CheckAlarms(s.Want), etcd.Disarm(s.Want), gate.Store(s.Want))
	}}
}

// ReplaceMember removes the target's member from etcd, deletes its data, and adds it again. All
// members are checked for data first: a host without data must not bootstrap a second etcd.
func ReplaceMember() plan.Task {
	return plan.Task{Name: "replace-member", When: storeIs(part.Service), Plan: func(s plan.Scope) plan.Fragment {
		c := s.Want
		return plan.Seq(
			plan.On(s.WithoutTargets().Role(manifest.RoleEtcd), etcd.CheckKeys(c)),
			plan.Roll(s.Role(manifest.RoleEtcd), func(h manifest.Host) plan.Fragment {
				return plan.On(one(h), etcd.CheckReplaceable(c), etcd.ClearMember(c), etcd.Rejoin(c), gate.Store(c))
			}),
		)
	}}
}

// JoinMembers adds etcd members that run as services, one after another: each is a learner until it
// has the data of the others. CheckEtcd has checked all members for data before, because a host
// without data must not bootstrap a second etcd.
func JoinMembers() plan.Task {
	return plan.Task{Name: "join-etcd", When: func(s plan.Scope) bool { return len(joiningMembers(s)) > 0 }, Plan: func(s plan.Scope) plan.Fragment {
		joining := joiningMembers(s)
		later := hostNames(joining)
		return plan.Roll(joining, func(h manifest.Host) plan.Fragment {
			later = slices.DeleteFunc(slices.Clone(later), func(name string) bool { return name == h.Name })
			return plan.On(one(h), etcd.Install(s.Want), etcd.WaitHealthy(s.Want), gate.Store(s.Want.Without(later)))
		})
	}}
}

// RemoveMembers removes the etcd members that run as services from the hosts that leave, one after
// another, through a member that remains.
func RemoveMembers() plan.Task {
	return plan.Task{Name: "remove-members", When: func(s plan.Scope) bool { return len(leavingServices(s)) > 0 }, Plan: func(s plan.Scope) plan.Fragment {
		leaving, by := leavingServices(s), remainingMember(s)
		return plan.Roll(leaving, func(h manifest.Host) plan.Fragment {
			return plan.Seq(
				plan.QualifyIDs("before", plan.On(by, gate.RemainingStore(s.Before, leaving))),
				plan.On(by, etcd.RemoveMember(s.Before, h)),
				plan.QualifyIDs("after", plan.On(by, gate.RemainingStore(s.Before, leaving))),
			)
		})
	}}
}

// UpdateEtcdClients lets the API servers know the etcd members of the cluster, if services join or
// leave. One API server restarts at a time, and each only while all others are ready.
func UpdateEtcdClients() plan.Task {
	return plan.Task{Name: "update-etcd-clients", When: changesMembers, Plan: func(s plan.Scope) plan.Fragment {
		masters := joined(s, s.WithoutTargets().Role(manifest.RoleMaster))
		return plan.Roll(masters, func(h manifest.Host) plan.Fragment {
			return plan.Seq(
				plan.QualifyIDs("before", plan.On(masters, gate.API(s.Want))),
				plan.On(one(h), kubeadm.UpdateEtcdServers(s.Want)),
				plan.QualifyIDs("after", plan.On(one(h), gate.API(s.Want))),
			)
		})
	}}
}

// joiningMembers returns the targets that become etcd members which run as services.
func joiningMembers(s plan.Scope) []manifest.Host {
	if len(s.Targets) == 0 || part.StoreOf(s.Want).Kind != part.Service {
		return nil
	}
	return s.Role(manifest.RoleEtcd)
}

// leavingServices returns the leaving hosts that run etcd members as services.
func leavingServices(s plan.Scope) []manifest.Host {
	return slices.DeleteFunc(s.Leaving(), func(h manifest.Host) bool {
		return part.StoreOf(s.Before).Kind != part.Service || !part.Members.In(s.Before, h.Name)
	})
}

// changesMembers reports whether etcd members that run as services join or leave.
func changesMembers(s plan.Scope) bool { return len(joiningMembers(s))+len(leavingServices(s)) > 0 }

// remainingMember returns the host of an etcd member that neither joins nor leaves.
func remainingMember(s plan.Scope) []manifest.Host {
	all := slices.DeleteFunc(slices.Clone(s.WithoutTargets().Role(manifest.RoleEtcd)), func(h manifest.Host) bool { return slices.Contains(s.Targets, h.Name) })
	return all[:min(1, len(all))]
}
