package etcd

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// healthTimeout is how long kubexm waits for members: they elect a leader as soon as a
// quorum runs.
const healthTimeout = 2 * time.Minute

// maxRestarts is the number of restarts after which a member is considered failed. systemd
// restarts it every five seconds.
const maxRestarts = 3

var errExits = errors.New("etcd exits right after its start")

// WaitHealthy waits until the host's etcd member answers a linearizable read, which needs a
// quorum.
func WaitHealthy(c *manifest.Cluster) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "etcd.wait-healthy", ReadOnly: true, Timeout: healthTimeout + time.Minute},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			err := health(ctx, c, h)
			if runner.Refused(err) {
				return false, nil
			}
			return err == nil, err
		},
		Act: func(ctx context.Context, h *steps.Host) error { return answers(ctx, c, h) },
	}
}

// answers waits for the member of a host. It stops waiting for one that exits after each
// start. The error includes the last lines of its journal.
func answers(ctx context.Context, c *manifest.Cluster, h *steps.Host) error {
	exits := exitWatch{}
	err := steps.Until(ctx, healthTimeout, time.Second, func(ctx context.Context) error {
		err := health(ctx, c, h)
		if err == nil {
			return nil
		}
		if exited := exits.check(ctx, h); exited != nil {
			return steps.Permanent(exited)
		}
		return err
	})
	if err == nil {
		return nil
	}
	return steps.Advise(withJournal(ctx, h, err), "run journalctl -u %s on %s, and check that the etcd hosts reach each other on port %s", unit, h.Name, peerPort)
}

// exitWatch counts the restarts of the host's etcd.
type exitWatch struct {
	seen  bool
	first int
}

// check returns errExits if etcd has been restarted too often since the first call.
func (w *exitWatch) check(ctx context.Context, h *steps.Host) error {
	u, err := h.Unit(ctx, unit)
	if err != nil {
		return nil //nolint:nilerr // the caller has another error to report
	}
	if !w.seen || u.Restarts < w.first { // the unit was started again, with a new counter
		w.seen, w.first = true, u.Restarts
	}
	if u.Restarts-w.first >= maxRestarts {
		return errExits
	}
	return nil
}

// withJournal adds the last lines of etcd's journal to an error.
func withJournal(ctx context.Context, h *steps.Host, err error) error {
	if log, jerr := h.Journal(context.WithoutCancel(ctx), unit, 8); jerr == nil && strings.TrimSpace(log) != "" {
		return errors.Join(err, errors.New("its last lines:\n"+log))
	}
	return err
}

// health makes a linearizable read through the member of a host, or with "--cluster" in
// more through all members.
func health(ctx context.Context, c *manifest.Cluster, h *steps.Host, more ...string) error {
	_, err := ofService(5*time.Second, clientURL(address(c, h.Host))).Run(ctx, h, append([]string{"endpoint", "health"}, more...)...)
	return err
}
