package cluster

import (
	"context"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// DeleteNode deletes the Node object of a host that has left the cluster, or never will
// answer again, and the pods that DaemonSets have created for it again: until these are deleted,
// DaemonSets count the node. It runs on a master.
func DeleteNode(n manifest.Host) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "kubernetes.delete-node", Timeout: 2 * time.Minute, Risk: steps.Disruptive, Retry: steps.Retry{Times: 5, Wait: 3 * time.Second}},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			nodes, err := kubectl.NodesReady(ctx, h)
			if runner.Refused(err) {
				return false, nil
			}
			_, exists := nodes[n.Name]
			return err == nil && !exists, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			if _, err := kubectl.Run(ctx, h, "--request-timeout=30s", "delete", "node", n.Name, "--ignore-not-found"); err != nil {
				return err
			}
			return deletePods(ctx, h, n.Name)
		},
	}
}
