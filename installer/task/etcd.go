package task

import (
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps/etcd"
	"github.com/mensylisir/kubexm/steps/kubeadm"
)

// CheckEtcd asks a store that stands already how it is, from each master; of one
// of ours it looks whether this machine has the keys.
func CheckEtcd() plan.Task {
	return plan.Task{Name: "check-etcd", Plan: func(s plan.Scope) plan.Fragment {
		switch part.StoreOf(s.Want).Kind {
		case part.External:
			return plan.On(s.Role(manifest.RoleMaster), s.Checks(etcd.CheckExternal(s.Want))...)
		case part.Service:
			return plan.On(s.Role(manifest.RoleEtcd), etcd.CheckKeys(s.Want))
		case part.Stacked:
		}
		return plan.Fragment{}
	}}
}

// CheckKept looks on every host for data of a deletion that preserved it.
func CheckKept() plan.Task {
	return plan.Task{Name: "check-kept-data", Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.Hosts(), s.Checks(kubeadm.CheckKept(s.Want))...)
	}}
}

// InstallEtcd brings up the members side by side: none answers before most of
// them run.
func InstallEtcd() plan.Task {
	return plan.Task{Name: "install-etcd", When: storeIs(part.Service), Plan: func(s plan.Scope) plan.Fragment {
		members := s.Role(manifest.RoleEtcd)
		return plan.Seq(plan.On(members, etcd.Install(s.Want)), plan.On(members, etcd.WaitHealthy(s.Want)))
	}}
}

// UninstallEtcd is its inverse, with all data where that is not to stay.
func UninstallEtcd() plan.Task {
	return plan.Task{Name: "uninstall-etcd", When: storeIs(part.Service), Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.Role(manifest.RoleEtcd), etcd.Uninstall(s.Want, preserves(s)))
	}}
}

// GiveEtcdKeys brings to the masters what their API servers reach the store with.
func GiveEtcdKeys() plan.Task {
	return plan.Task{Name: "give-etcd-keys", When: hasEtcdKeys, Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.Role(manifest.RoleMaster), etcd.GiveKeys(s.Want))
	}}
}

// TakeEtcdKeys is its inverse.
func TakeEtcdKeys() plan.Task {
	return plan.Task{Name: "take-etcd-keys", When: hasEtcdKeys, Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.Role(manifest.RoleMaster), etcd.TakeKeys(s.Want))
	}}
}

// NoteEtcd says what is left in a store that is not kubexm's.
func NoteEtcd() plan.Task {
	return plan.Task{Name: "note-etcd", When: storeIs(part.External), Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.Initial(), etcd.NoteLeft(s.Want))
	}}
}

func storeIs(kind part.StoreKind) func(plan.Scope) bool {
	return func(s plan.Scope) bool { return part.StoreOf(s.Want).Kind == kind }
}

func hasEtcdKeys(s plan.Scope) bool { return etcd.NeedsKeys(s.Want) }
