package task

import (
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/cluster"
)

// Record writes down what was applied: on each host which release it has, in the cluster
// what it is now, and copies of that on the masters and here. That the cluster has a
// record says that its creation has ended.
func Record() plan.Task {
	return plan.Task{Name: "record", Plan: func(s plan.Scope) plan.Fragment {
		return plan.Seq(
			plan.On(s.Hosts(), cluster.KeepRelease()),
			plan.On(s.Lead(), cluster.Record(), cluster.ReadRecord()),
			plan.On(s.Whole().Role(manifest.RoleMaster), cluster.KeepCopy()),
			plan.On(s.Lead(), cluster.KeepApplied()),
		)
	}}
}
