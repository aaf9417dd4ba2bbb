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

// patience is how long members are waited for: they elect one of them as soon
// as most of them run.
const patience = 2 * time.Minute

// hopeless is how many restarts say that a member will not come up: one comes every
// five seconds.
const hopeless = 3

var errEnds = errors.New("etcd ends as soon as it is started")

// WaitHealthy waits until the member of a host answers a read that most members
// have to agree on.
func WaitHealthy(c *manifest.Cluster) steps.Step {
	look := func(ctx context.Context, h *steps.Host) error { return health(ctx, c, h) }
	return &op.Do{
		M: steps.Meta{Name: "etcd.wait-healthy", LooksOnly: true, Timeout: patience + time.Minute},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			err := look(ctx, h)
			if runner.Refused(err) {
				return false, nil
			}
			return err == nil, err
		},
		Act: func(ctx context.Context, h *steps.Host) error { return answers(ctx, c, h) },
	}
}

// answers waits for the member of a host. One that ends whenever it is started is
// not waited for any longer; what it said last is in the error.
func answers(ctx context.Context, c *manifest.Cluster, h *steps.Host) error {
	first := -1
	err := steps.Until(ctx, patience, time.Second, func(ctx context.Context) error {
		err := health(ctx, c, h)
		if err == nil {
			return nil
		}
		u, uerr := h.Unit(ctx, unit)
		if uerr != nil {
			return err
		}
		if first < 0 || u.Restarts < first { // it was started anew
			first = u.Restarts
		}
		if u.Restarts-first >= hopeless {
			return steps.Lost(errEnds)
		}
		return err
	})
	if err == nil {
		return nil
	}
	if log, jerr := h.Journal(context.WithoutCancel(ctx), unit, 8); jerr == nil && strings.TrimSpace(log) != "" {
		err = errors.Join(err, errors.New("its last lines:\n"+log))
	}
	return steps.Advise(err, "see `journalctl -u %s` on %s, and whether the etcd hosts reach each other on port %s", unit, h.Name, peerPort)
}

// health asks the member of a host, or with more all of them, for a read that most
// members have to agree on.
func health(ctx context.Context, c *manifest.Cluster, h *steps.Host, more ...string) error {
	_, err := ofService(5*time.Second, clientURL(address(c, h.Host))).Run(ctx, h, append([]string{"endpoint", "health"}, more...)...)
	return err
}
