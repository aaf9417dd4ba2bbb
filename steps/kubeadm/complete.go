package kubeadm

import (
	"context"
	"errors"
	"time"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/runner"
)

// How long a control plane that was made has to answer again: one that is whole
// is waited for until its containers would long have been started again, one of
// which that is not known only so long as a host takes after a boot. One that is
// about to be taken back has a breath: it answered just now, or never did.
const (
	patience = 3 * time.Minute
	doubt    = 90 * time.Second
	breath   = 10 * time.Second
)

// look is how init or join of a master is seen to have ended well.
type look = func(context.Context, *steps.Host) (bool, error)

// found makes a host ready for init or join of a master. done says that it is one
// already: it was whole once and answers again, or its job of an earlier run has
// brought it there. What was left half way is taken back.
func found(ctx context.Context, h *steps.Host, j runner.Job, ended look) (done bool, err error) {
	whole, err := controlplane.Complete(ctx, h)
	if err != nil {
		return false, err
	}
	if whole {
		done, err := awaken(ctx, h, ended, patience)
		if err == nil && !done {
			anew := "to join it anew: kubeadm reset --force there, then run again"
			if j.Name == initJob.Name { // another init would make another cluster
				anew = "to make another cluster: kubexm delete cluster, which destroys all data, then kubexm install"
			}
			err = steps.Advise(errors.New("this host was made a master, and does not answer as one"),
				"see `journalctl -u kubelet` and `crictl ps -a` on %s, of which nothing was touched; %s", h.Name, anew)
		}
		return done, err
	}
	s, err := h.Job(ctx, j, 0)
	if err != nil {
		return false, err
	}
	k, err := readKept(ctx, h) // in a store that was preserved there is all that is looked for
	if err != nil {
		return false, err
	}
	if !s.Exists && k == nil { // nobody is at work: it may have ended before it was written down
		sound, err := controlplane.Bootable(ctx, h)
		if err == nil && sound {
			done, err = awaken(ctx, h, ended, doubt)
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
	if err == nil && !done { // of one that somebody has reset
		err = h.Remove(ctx, controlplane.CompleteFile)
	}
	return done, err
}

// awaken sees to it that the kubelet runs, and waits for the master to answer.
func awaken(ctx context.Context, h *steps.Host, ended look, long time.Duration) (bool, error) {
	u, err := h.Unit(ctx, "kubelet.service")
	if err != nil {
		return false, err
	}
	if !u.IsActive() {
		// A refusal: what comes of it is seen below.
		if err := h.UnitStart(ctx, "kubelet.service"); err != nil && !runner.Refused(err) {
			return false, err
		}
	}
	return soon(ctx, h, ended, long)
}

// soon looks again and again for some time.
func soon(ctx context.Context, h *steps.Host, ended look, long time.Duration) (bool, error) {
	until := time.After(long)
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
