package kubeadm

import (
	"context"
	"fmt"
	"time"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// StopAPIServer ends the API server of a master that leaves the cluster, before its etcd member is
// removed: an API server without etcd accepts connections and answers no request until it times
// out, where a closed port sends clients to another master at once. The API server finishes
// its requests, and the kubelet does not start it again.
func StopAPIServer() steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "kubeadm.stop-api-server", Timeout: restartTimeout + time.Minute, Risk: steps.Destroys},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			is, err := controlplane.HasMarkers(ctx, h)
			if err != nil || !is { // the runtime may be gone too
				return err == nil, err
			}
			exists, err := h.Exists(ctx, apiServerManifest)
			if err != nil || exists {
				return false, err
			}
			running, err := sandbox(ctx, h, "kube-apiserver")
			return err == nil && running == "", err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			if err := markReset(ctx, h); err != nil { // from here on only a reset makes the host whole
				return err
			}
			if err := h.Remove(ctx, apiServerManifest); err != nil {
				return err
			}
			return waitStopped(ctx, h, "kube-apiserver")
		},
	}
}

// markReset records on a host that kubexm removes Kubernetes from it.
func markReset(ctx context.Context, h *steps.Host) error {
	if _, err := h.Mkdir(ctx, "/etc/kubernetes", runner.Attr{}); err != nil {
		return err
	}
	return h.WriteFile(ctx, controlplane.ResetFile, []byte("kubexm takes Kubernetes off this host\n"), runner.Attr{Mode: 0o600})
}

// waitStopped waits until no pod of a part runs whose manifest has been removed. The kubelet stops
// it; a kubelet that does not run leaves it to the runtime.
func waitStopped(ctx context.Context, h *steps.Host, part string) error {
	for begin := time.Now(); ; {
		in, err := sandbox(ctx, h, part)
		if err != nil || in == "" {
			return err
		}
		switch after := time.Since(begin); {
		case after > restartTimeout:
			return steps.Advise(fmt.Errorf("%s still runs on %s %s after its manifest was removed", part, h.Name, restartTimeout),
				"run crictl pods --name %s and journalctl -u kubelet on %s", part, h.Name)
		case after > gracePeriod:
			if _, err := h.Run(ctx, runner.Cmd{Argv: []string{"crictl", "stopp", in}, OK: []int{1}, Timeout: time.Minute}); err != nil { // 1: the kubelet was faster
				return err
			}
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
