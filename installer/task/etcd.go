package task

import (
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps/etcd"
	"github.com/mensylisir/kubexm/steps/kubeadm"
)

// CheckEtcd checks the state of an external etcd from each master. For an etcd that kubexm
// installs, it checks whether this machine has the keys.
func CheckEtcd() plan.Task {
	return plan.Task{Name: "check-etcd", Plan: func(s plan.Scope) plan.Fragment {
		switch part.StoreOf(s.Want).Kind {
		case part.External:
			return plan.On(s.Role(manifest.RoleMaster), s.Checks(etcd.CheckExternal(s.Want))...)
		case part.Service:
			members := s.Role(manifest.RoleEtcd)
			if s.Exists != nil && len(joiningMembers(s)) > 0 { // those join the members that have data
				members = s.WithoutTargets().Role(manifest.RoleEtcd)
			}
			return plan.On(members, etcd.CheckKeys(s.Want))
		case part.Stacked:
		}
		return plan.Fragment{}
	}}
}

// CheckPreserved checks every host for data that a deletion preserved.
func CheckPreserved() plan.Task {
	return plan.Task{Name: "check-kept-data", Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.Hosts(), s.Checks(kubeadm.CheckPreserved(s.Want))...)
	}}
}

// InstallEtcd starts all members in parallel: none answers before there is a quorum.
func InstallEtcd() plan.Task {
	return plan.Task{Name: "install-etcd", When: storeIs(part.Service), Plan: func(s plan.Scope) plan.Fragment {
		members := s.Role(manifest.RoleEtcd)
		return plan.Seq(plan.On(members, etcd.Install(s.Want)), plan.On(members, etcd.WaitHealthy(s.Want)))
	}}
}

// UninstallEtcd is its inverse, with all data unless it is preserved.
func UninstallEtcd() plan.Task {
	return plan.Task{Name: "uninstall-etcd", When: storeIs(part.Service), Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.Role(manifest.RoleEtcd), etcd.Uninstall(s.Want, preserves(s)))
	}}
}

// InstallEtcdClientFiles copies to the masters the certificates with which their API servers
// connect to etcd.
func InstallEtcdClientFiles() plan.Task {
	return plan.Task{Name: "give-etcd-keys", When: hasEtcdKeys, Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.Role(manifest.RoleMaster), etcd.InstallClientFiles(s.Want))
	}}
}

// RemoveEtcdClientFiles is its inverse.
func RemoveEtcdClientFiles() plan.Task {
	return plan.Task{Name: "take-etcd-keys", When: hasEtcdKeys, Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.Role(manifest.RoleMaster), etcd.RemoveClientFiles(s.Want))
	}}
}

// ReportEtcd reports what remains in an external etcd.
func ReportEtcd() plan.Task {
	return plan.Task{Name: "note-etcd", When: storeIs(part.External), Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.InitialMaster(), etcd.ReportRemaining(s.Want))
	}}
}

func storeIs(kind part.StoreKind) func(plan.Scope) bool {
	return func(s plan.Scope) bool { return part.StoreOf(s.Want).Kind == kind }
}

func hasEtcdKeys(s plan.Scope) bool { return etcd.NeedsClientFiles(s.Want) }
