package node

import (
	"context"

	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// users are units that stand on a host made ready.
func users() []string {
	var out []string
	for _, r := range part.Runtimes() { // whatever the config says by now
		out = append(out, r.Unit)
	}
	return append(out, "kubelet.service", "etcd.service", "kubexm-registry.service")
}

// CheckUnused looks whether kubexm installed anything on the host that needs it
// ready: taking that away is a deletion's business, which gives the host back too.
func CheckUnused() steps.Step {
	return op.Check("node.check-unused", func(ctx context.Context, h *steps.Host) (steps.Findings, error) {
		var found steps.Findings
		for _, unit := range users() {
			here, err := op.Recorded(ctx, h, op.Unit{Name: unit})
			if err != nil {
				return nil, err
			}
			if here {
				found = append(found, steps.Finding{What: unit + " of the cluster is installed there", Advice: "run kubexm delete cluster, or kubexm reset: they give the host back too"})
			}
		}
		return found, nil
	})
}
