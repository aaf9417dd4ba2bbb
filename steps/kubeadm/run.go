package kubeadm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// kubeadm waits minutes for a kubelet that ends as soon as it is started. That
// many restarts say that it will not come up: a restart comes every ten seconds.
const (
	hopeless = 3
	lookEach = 5 * time.Second
)

// errKubeletEnds is why kubeadm was not waited for any longer.
var errKubeletEnds = errors.New("the kubelet ends as soon as it is started")

// run runs a job of kubeadm's to its end, or until the kubelet that it waits for
// is seen not to come up. What failed on the node is in the error, since kubeadm
// itself only knows that nobody answered.
func run(ctx context.Context, h *steps.Host, j runner.Job) error {
	err := attend(ctx, h, j, func(ctx context.Context) error {
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

// attend waits for a job by wait, and gives it up where it waits in vain.
func attend(ctx context.Context, h *steps.Host, j runner.Job, wait func(context.Context) error) error {
	watched, giveUp := context.WithCancelCause(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		if kubeletEnds(watched, h) {
			giveUp(errKubeletEnds)
		}
	}()
	err := wait(watched)
	giveUp(nil)
	<-over
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(watched), errKubeletEnds) {
		return errors.Join(errKubeletEnds, h.ClearJob(ctx, j))
	}
	return err
}

// kubeletEnds looks at the kubelet until ctx ends, or until it was restarted
// again and again since.
func kubeletEnds(ctx context.Context, h *steps.Host) bool {
	first := -1
	for {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(lookEach):
		}
		u, err := h.Unit(ctx, "kubelet.service")
		if err != nil { // kubeadm's own end says more
			continue
		}
		if first < 0 || u.Restarts < first { // it was started anew
			first = u.Restarts
		}
		if u.Restarts-first >= hopeless && !u.IsActive() {
			return true
		}
	}
}

// nodeError says what failed on the node, and knows what kubeadm said of it.
type nodeError struct {
	why string
	err error
}

func (e *nodeError) Error() string { return e.why }
func (e *nodeError) Unwrap() error { return e.err }

// evidence says which part of the node does not run, with its own last words;
// "" where nothing is to be found.
func evidence(ctx context.Context, h *steps.Host) string {
	u, err := h.Unit(ctx, "kubelet.service")
	if err != nil {
		return ""
	}
	switch u.Active {
	case "failed", "activating": // it waits for its next restart
		log, err := h.Journal(ctx, "kubelet.service", 60)
		if words := lastWords(log); err == nil && words != "" {
			return "the kubelet does not run: " + words
		}
	case "active":
		if name, words := deadContainer(ctx, h); words != "" {
			return fmt.Sprintf("container %s does not run: %s", name, words)
		}
		return endpointAway(ctx, h)
	}
	return ""
}
