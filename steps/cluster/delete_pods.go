package cluster

import (
	"context"
	"slices"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// DeletePods deletes the pods of a node whose kubelet does not run any more, without it: Services
// stop forwarding to them at once, and their controllers start others. Without it Kubernetes deletes
// them about a minute after the node. Meanwhile the network plugins of the other nodes know no route
// to them any more, and what is sent to them follows the default route. The node stays cordoned if the
// step fails: nothing starts a pod there any more. It runs on a master, before the node is deleted.
func DeletePods(n manifest.Host) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "kubernetes.delete-pods", Timeout: 3 * time.Minute, Risk: steps.Disruptive, Retry: steps.Retry{Times: 5, Wait: 3 * time.Second}},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			left, err := startedPods(ctx, h, n.Name)
			if runner.Refused(err) {
				return false, nil
			}
			return err == nil && !left, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			// First no new pods: until Kubernetes misses the node it is as good as any other.
			if _, exists, err := findNode(ctx, h, n.Name); err != nil {
				return err
			} else if exists {
				if err := cordon(ctx, h, n.Name); err != nil {
					return err
				}
			}
			return deletePods(ctx, h, n.Name)
		},
	}
}

func deletePods(ctx context.Context, h *steps.Host, node string) error {
	_, err := kubectl.Run(ctx, h, "--request-timeout=60s", "delete", "pods", "-A", "--field-selector=spec.nodeName="+node, "--force", "--grace-period=0", "--wait=false")
	return err
}

// startedPods reports whether a node has pods that were started on it. Those that a DaemonSet
// creates again wait for the kubelet.
func startedPods(ctx context.Context, h *steps.Host, node string) (bool, error) {
	all, err := listPods(ctx, h, node)
	return slices.ContainsFunc(all, func(p pod) bool { return p.phase != "Pending" || p.evicted() }), err
}
