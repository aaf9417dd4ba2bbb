package controlplane

import (
	"context"
	"errors"
	"path"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// removePods removes the pods that kubeadm reset has left: on a slow host its requests to the
// runtime time out. It must run while the network plugin's files exist, with which the
// runtime removes the pods' interfaces. A network plugin may need an API server for that, which
// may have ended already: then the interfaces are removed with the pods' network namespaces.
func removePods(ctx context.Context, h *steps.Host) error {
	if err := removeLeftPods(ctx, h); !runner.Refused(err) {
		return err
	}
	if err := WithoutNetwork(ctx, h); err != nil {
		return err
	}
	return steps.Until(ctx, reloadTimeout, time.Second, func(ctx context.Context) error { return removeLeftPods(ctx, h) }) // the runtime notices the file in a moment
}

// WithoutNetwork has the runtime remove pods without the network plugin: their interfaces are removed
// with their network namespaces. The runtime takes a moment to notice it.
func WithoutNetwork(ctx context.Context, h *steps.Host) error {
	if _, err := h.Mkdir(ctx, path.Dir(noNetwork), runner.Attr{}); err != nil {
		return err
	}
	return h.WriteFile(ctx, noNetwork, []byte(`{"cniVersion": "0.3.1", "name": "none", "plugins": [{"type": "loopback"}]}`+"\n"), runner.Attr{Mode: 0o600})
}

const (
	// noNetwork is the configuration of a network without a plugin, which the runtime prefers to
	// others. It is removed with its folder.
	noNetwork = "/etc/cni/net.d/00-kubexm-reset.conflist"
	// reloadTimeout is how long pods are removed again after noNetwork was written.
	reloadTimeout = 30 * time.Second
)

func removeLeftPods(ctx context.Context, h *steps.Host) error {
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
