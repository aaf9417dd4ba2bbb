package module

import (
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/task"
)

// MoveLeader transfers the leadership of etcd.
func MoveLeader() plan.Module {
	return plan.Module{Name: "store", Plan: plan.Sequential(task.MoveLeader())}
}

// DefragmentStore defragments the etcd members.
func DefragmentStore() plan.Module {
	return plan.Module{Name: "store", Plan: plan.Sequential(task.DefragmentStore())}
}

// DisarmAlarms disarms the alarms of etcd.
func DisarmAlarms() plan.Module {
	return plan.Module{Name: "store", Plan: plan.Sequential(task.DisarmAlarms())}
}

// ReplaceMember replaces an etcd member that has lost its data.
func ReplaceMember() plan.Module {
	return plan.Module{Name: "store", Plan: plan.Sequential(task.ReplaceMember())}
}
