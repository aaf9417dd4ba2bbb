package gate

import (
	"context"
	"strings"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
)

// Rolled waits until a Deployment, DaemonSet or StatefulSet has replaced its pods by those
// of its newest template, and all of them are ready. It is asked on a master.
func Rolled(kind, namespace, name string) steps.Step {
	w := op.Workload{Kind: kind, Namespace: namespace, Name: name}
	return wait{
		name: "gate.rolled-" + strings.ToLower(name),
		look: func(ctx context.Context, h *steps.Host) ([]string, error) {
			bad, err := kubectl.Unready(ctx, h, w)
			if bad == "" || err != nil {
				return nil, err
			}
			return []string{bad}, nil
		},
		advice: "see `kubectl -n " + namespace + " describe " + strings.ToLower(kind) + "/" + name + "` on %s",
	}.step()
}
