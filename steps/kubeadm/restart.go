package kubeadm

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/etcd"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// RestartAPIServer restarts the API server of a master.
func RestartAPIServer() steps.Step {
	return op.Again("kubeadm.restart-api-server", func(ctx context.Context, h *steps.Host) error { return restartPod(ctx, h, "kube-apiserver") })
}

// RestartControllerManager restarts the controller manager of a master.
func RestartControllerManager() steps.Step {
	return op.Again("kubeadm.restart-controller-manager", func(ctx context.Context, h *steps.Host) error {
		return restartPod(ctx, h, "kube-controller-manager")
	})
}

// RestartScheduler restarts the scheduler of a master.
func RestartScheduler() steps.Step {
	return op.Again("kubeadm.restart-scheduler", func(ctx context.Context, h *steps.Host) error { return restartPod(ctx, h, "kube-scheduler") })
}

// RestartMember restarts the etcd member that kubeadm runs on a master, if all members are
// healthy.
func RestartMember(c *manifest.Cluster) steps.Step {
	return op.Again("kubeadm.restart-etcd", func(ctx context.Context, h *steps.Host) error {
		if err := etcd.MayStop(ctx, c, h); err != nil {
			return err
		}
		return restartPod(ctx, h, "etcd")
	})
}

const (
	// gracePeriod is how long a container has to end after SIGTERM.
	gracePeriod = 30 * time.Second
	// restartTimeout is how long the kubelet may take to start a static pod again: it checks
	// every few seconds, and waits longer for one that has failed before.
	restartTimeout = 3 * time.Minute
)

// restartPod stops a static pod and waits until the kubelet has started it in another
// sandbox: deleting its mirror pod from the API server restarts nothing. Its container is
// stopped first, with a grace period, because the runtime kills those of a stopped sandbox.
func restartPod(ctx context.Context, h *steps.Host, part string) error {
	before, err := sandbox(ctx, h, part)
	if err != nil {
		return err
	}
	if before == "" {
		return steps.Advise(fmt.Errorf("no pod of %s runs on %s", part, h.Name), "run crictl pods --name %s and journalctl -u kubelet on %s", part, h.Name)
	}
	running, err := containerOf(ctx, h, part, before)
	if err != nil {
		return err
	}
	if running != "" {
		if _, err := h.Run(ctx, runner.Cmd{Argv: []string{"crictl", "stop", "--timeout", fmt.Sprint(int(gracePeriod.Seconds())), running}, Timeout: 2 * gracePeriod}); err != nil {
			return err
		}
	}
	if _, err := h.Run(ctx, runner.Cmd{Argv: []string{"crictl", "stopp", before}, Timeout: time.Minute}); err != nil {
		return err
	}
	return waitRestarted(ctx, h, part, before)
}

// waitRestarted waits until the kubelet has started a static pod in another sandbox than before.
func waitRestarted(ctx context.Context, h *steps.Host, part, before string) error {
	for end := time.Now().Add(restartTimeout); ; {
		now, err := sandbox(ctx, h, part)
		if err != nil {
			return err
		}
		if now != "" && now != before {
			if running, err := containerOf(ctx, h, part, now); err != nil || running != "" {
				return err
			}
		}
		if time.Now().After(end) {
			return steps.Advise(fmt.Errorf("%s does not run on %s %s after it was stopped", part, h.Name, restartTimeout), "run crictl ps -a --name %s and journalctl -u kubelet on %s", part, h.Name)
		}
		select {
		case <-time.After(2 * time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// sandbox returns the id of the sandbox of a static pod; "" if none is ready.
func sandbox(ctx context.Context, h *steps.Host, part string) (string, error) {
	return first(ctx, h, "pods", "--quiet", "--state", "Ready", "--namespace", "^kube-system$", "--name", "^"+part+"-"+regexp.QuoteMeta(h.Name)+"$")
}

// containerOf returns the id of the container of a part in a sandbox; "" if none runs.
func containerOf(ctx context.Context, h *steps.Host, part, in string) (string, error) {
	return first(ctx, h, "ps", "--quiet", "--state", "Running", "--pod", in, "--name", "^"+part+"$")
}

func first(ctx context.Context, h *steps.Host, words ...string) (string, error) {
	out, err := h.Exec(ctx, append([]string{"crictl"}, words...)...)
	if err != nil {
		return "", err
	}
	id, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return id, nil
}
