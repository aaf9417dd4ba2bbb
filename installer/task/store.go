package task

import (
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps/etcd"
	"github.com/mensylisir/kubexm/steps/gate"
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
