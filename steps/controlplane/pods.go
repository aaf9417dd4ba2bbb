package controlplane

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// removePods removes the pods that kubeadm reset has left: on a slow host its requests to the
// runtime time out. It must run while the network plugin's files exist, with which the
// runtime removes the pods' interfaces.
func removePods(ctx context.Context, h *steps.Host) error {
	left, err := h.Run(ctx, runner.Cmd{Argv: []string{"crictl", "pods", "--quiet"}, OK: []int{1, 127}}) // 1, 127: containerd does not run any more
	if err != nil {
		return err
	}
	var errs []error
	for id := range strings.FieldsSeq(string(left.Stdout)) {
		_, err := h.Run(ctx, runner.Cmd{Argv: []string{"crictl", "--timeout", "2m", "rmp", "--force", id}, Timeout: 3 * time.Minute})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
