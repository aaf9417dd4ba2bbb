package containerd

import (
	"context"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// Restart restarts containerd. Containers continue to run: their shims are separate
// processes.
func Restart() steps.Step {
	return op.Again("containerd.restart", func(ctx context.Context, h *steps.Host) error { return op.RestartUnit(ctx, h, Unit) })
}
