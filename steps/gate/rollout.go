package gate

import (
	"context"
	"strings"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
)

// RolledOut waits until the rollout of a Deployment, DaemonSet or StatefulSet is complete: all
// pods are of the newest template and ready. It runs on a master.
func RolledOut(kind, namespace, name string) steps.Step {
	w := op.Workload{Kind: kind, Namespace: namespace, Name: name}
	return wait{
		name: "gate.rolled-" + strings.ToLower(name),
		check: func(ctx context.Context, h *steps.Host) ([]string, error) {
			bad, err := kubectl.Unready(ctx, h, w)
			if bad == "" || err != nil {
				return nil, err
			}
			return []string{bad}, nil
		},
		advice: "run kubectl -n " + namespace + " describe " + strings.ToLower(kind) + "/" + name + " on %s",
	}.step()
}
