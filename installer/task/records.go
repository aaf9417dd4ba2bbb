package task

import (
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/cluster"
)

// Record writes what was applied: the release on each host, the cluster record in the cluster,
// and its copies on the masters and on this machine. A cluster that has a record has finished
// its installation.
func Record() plan.Task {
	return plan.Task{Name: "record", Plan: func(s plan.Scope) plan.Fragment {
		return plan.Seq(
			plan.On(s.Hosts(), cluster.WriteRelease()),
			plan.On(s.Lead(), cluster.Record(), cluster.ReadRecord()),
			plan.On(s.WithoutTargets().Role(manifest.RoleMaster), cluster.WriteCopy()),
			plan.On(s.Lead(), cluster.WriteApplied()),
		)
	}}
}
