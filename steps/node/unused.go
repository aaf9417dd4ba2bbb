package node

import (
	"context"

	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// clusterUnits returns the units of a cluster that depend on a prepared host.
func clusterUnits() []string {
	var out []string
	for _, r := range part.Runtimes() { // the config may have changed since
		out = append(out, r.Unit)
	}
	return append(out, "kubelet.service", "etcd.service", "kubexm-registry.service")
}

// CheckUnused reports units of a cluster that kubexm has installed on the host. Such a host
// must not be restored alone: the deletion of the cluster restores it too.
func CheckUnused() steps.Step {
	return op.Check("node.check-unused", func(ctx context.Context, h *steps.Host) (steps.Findings, error) {
		var found steps.Findings
		for _, unit := range clusterUnits() {
			recorded, err := op.Recorded(ctx, h, op.Unit{Name: unit})
			if err != nil {
				return nil, err
			}
			if recorded {
				found = append(found, steps.Finding{What: unit + " of the cluster is installed on this host", Advice: "run kubexm delete cluster, or kubexm reset: both restore the host too"})
			}
		}
		return found, nil
	})
}
