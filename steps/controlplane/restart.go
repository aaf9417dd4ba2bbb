package controlplane

import (
	"context"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// RestartKubelet restarts the kubelet of a node. Its pods continue to run.
func RestartKubelet() steps.Step {
	return op.Again("kubernetes.restart-kubelet", func(ctx context.Context, h *steps.Host) error { return op.RestartUnit(ctx, h, "kubelet.service") })
}
