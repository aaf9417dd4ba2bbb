package kubeadm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// kubeadm waits for minutes for a kubelet that exits right after its start. systemd restarts
// it every ten seconds; after maxRestarts restarts it is considered failed.
const (
	maxRestarts  = 3
	pollInterval = 5 * time.Second
)

// errKubeletExits is why kubexm stopped waiting for kubeadm.
var errKubeletExits = errors.New("the kubelet exits right after its start")

// run runs a job of kubeadm to its end, or until the kubelet that it waits for has failed.
// The error includes what failed on the node: kubeadm itself only reports that it got no
// answer.
func run(ctx context.Context, h *steps.Host, j runner.Job) error {
	err := watch(ctx, h, j, func(ctx context.Context) error {
		_, err := h.RunJob(ctx, j)
		return err
	})
	if err == nil || ctx.Err() != nil {
		return err
	}
	if why := evidence(ctx, h); why != "" {
		return &nodeError{why: why, err: err}
	}
	return err
}

// watch waits for a job by calling wait, and cancels the job when the kubelet has failed.
func watch(ctx context.Context, h *steps.Host, j runner.Job, wait func(context.Context) error) error {
	watched, giveUp := context.WithCancelCause(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		if kubeletExits(watched, h) {
			giveUp(errKubeletExits)
		}
	}()
	err := wait(watched)
	giveUp(nil)
	<-over
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(watched), errKubeletExits) {
		return errors.Join(errKubeletExits, h.ClearJob(ctx, j))
	}
	return err
}

// kubeletExits polls the kubelet until ctx ends. It returns true once systemd has restarted
// the kubelet maxRestarts times and it still does not run.
func kubeletExits(ctx context.Context, h *steps.Host) bool {
	first := -1
	for {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pollInterval):
		}
		u, err := h.Unit(ctx, "kubelet.service")
		if err != nil { // kubeadm's own error is more precise
			continue
		}
		if first < 0 || u.Restarts < first { // the unit was started again, with a new counter
			first = u.Restarts
		}
		if u.Restarts-first >= maxRestarts && !u.IsActive() {
			return true
		}
	}
}

// nodeError describes what failed on the node, and wraps kubeadm's error.
type nodeError struct {
	why string
	err error
}

func (e *nodeError) Error() string { return e.why }
func (e *nodeError) Unwrap() error { return e.err }

// evidence describes the part of the node that does not run, with an error from its log; ""
// if it finds none.
func evidence(ctx context.Context, h *steps.Host) string {
	u, err := h.Unit(ctx, "kubelet.service")
	if err != nil {
		return ""
	}
	switch u.Active {
	case "failed", "activating": // activating: until the next restart
		log, err := h.Journal(ctx, "kubelet.service", 60)
		if words := lastError(log); err == nil && words != "" {
			return "the kubelet does not run: " + words
		}
	case "active":
		if name, words := deadContainer(ctx, h); words != "" {
			return fmt.Sprintf("container %s does not run: %s", name, words)
		}
		return endpointError(ctx, h)
	}
	return ""
}
