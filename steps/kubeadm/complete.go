package kubeadm

import (
	"context"
	"errors"
	"time"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Timeouts for a control plane to answer again.
const (
	// completeTimeout is for one that is marked complete: long enough for the kubelet to
	// restart all its containers.
	completeTimeout = 3 * time.Minute
	// unknownTimeout is for one that may be complete: as long as a host needs after a boot.
	unknownTimeout = 90 * time.Second
	// rollbackTimeout is for one that is about to be rolled back: it either answered a
	// moment ago or never will.
	rollbackTimeout = 10 * time.Second
)

// observer reports whether init or join of a node has succeeded.
type observer = func(context.Context, *steps.Host) (bool, error)

// prepareMaster prepares a host for init or join of a master. done reports that it is a
// master already: it is marked complete and answers, or the job of an earlier run has
// succeeded. An incomplete init or join is undone.
func prepareMaster(ctx context.Context, h *steps.Host, j runner.Job, ended observer) (done bool, err error) {
	complete, err := controlplane.Complete(ctx, h)
	if err != nil {
		return false, err
	}
	if complete {
		done, err := startAndWait(ctx, h, ended, completeTimeout)
		if err == nil && !done {
			again := "to join it again, run kubeadm reset --force on it, then repeat this command"
			if j.Name == initJob.Name { // another init would create another cluster
				again = "to create another cluster, run kubexm delete cluster, which destroys all data, then kubexm install"
			}
			err = steps.Advise(errors.New("this host is a master, but its control plane does not answer"),
				"nothing was changed on %s: run journalctl -u kubelet and crictl ps -a on it; %s", h.Name, again)
		}
		return done, err
	}
	s, err := h.Job(ctx, j, 0)
	if err != nil {
		return false, err
	}
	k, err := readPreserved(ctx, h) // a preserved store contains everything that ended checks for
	if err != nil {
		return false, err
	}
	if !s.Exists && k == nil { // no job runs: one may have succeeded before the host was marked complete
		sound, err := controlplane.Bootable(ctx, h)
		if err == nil && sound {
			done, err = startAndWait(ctx, h, ended, unknownTimeout)
		}
		if done && err == nil {
			return true, controlplane.MarkComplete(ctx, h)
		}
		if err != nil {
			return false, err
		}
	}
	if done, err = prepare(ctx, h, j, ended); done && err == nil {
		err = controlplane.MarkComplete(ctx, h)
	}
	if err == nil && !done { // the mark remains if a person reset the host with kubeadm
		err = h.Remove(ctx, controlplane.CompleteFile)
	}
	return done, err
}

// startAndWait starts the kubelet if it does not run, and polls until the node answers or
// the timeout has passed.
func startAndWait(ctx context.Context, h *steps.Host, ended observer, timeout time.Duration) (bool, error) {
	u, err := h.Unit(ctx, "kubelet.service")
	if err != nil {
		return false, err
	}
	if !u.IsActive() {
		// If systemd refuses, ended reports the consequence.
		if err := h.UnitStart(ctx, "kubelet.service"); err != nil && !runner.Refused(err) {
			return false, err
		}
	}
	return poll(ctx, h, ended, timeout)
}

// poll calls ended every 2 s until it is true or fails, or the timeout has passed.
func poll(ctx context.Context, h *steps.Host, ended observer, timeout time.Duration) (bool, error) {
	until := time.After(timeout)
	for {
		done, err := ended(ctx, h)
		if done || err != nil {
			return done, err
		}
		select {
		case <-time.After(2 * time.Second):
		case <-until:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}
