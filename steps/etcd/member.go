package etcd

import (
	"context"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// member is the unit of an etcd member. Members are started in parallel. A running member is
// restarted only while all others are healthy, one at a time: the steps of all hosts run in
// parallel, and a setting with which no member starts would stop the entire etcd.
type member struct {
	op.Unit

	cluster *manifest.Cluster
}

// othersTimeout is how long kubexm waits for all members to be healthy before it restarts
// one. It is short: a member that was restarted before has answered already.
const othersTimeout = 15 * time.Second

// Want starts the unit, or restarts it if all other members are healthy.
func (m member) Want(ctx context.Context, h *steps.Host, changed bool) (*op.Change, error) {
	change, err := m.Unit.Want(ctx, h, changed)
	if err != nil || change == nil {
		return nil, err
	}
	restart := change.Apply
	change.Apply = func(ctx context.Context, h *steps.Host) error {
		serves, err := m.serves(ctx, h)
		if err != nil {
			return err
		}
		if !serves {
			return m.startOrJoin(ctx, h, restart)
		}
		return restartLock(h).LockedContext(ctx, func() error {
			if err := steps.Until(ctx, othersTimeout, time.Second, func(ctx context.Context) error { return health(ctx, m.cluster, h, "--cluster") }); err != nil {
				return steps.Advise(err, "another member is not healthy, so this one was not restarted: run journalctl -u %s on the other etcd hosts", unit)
			}
			if err := restart(ctx, h); err != nil {
				return err
			}
			return answers(ctx, m.cluster, h)
		})
	}
	return change, nil
}

// startOrJoin starts a member that does not run. If it has no data but other members have,
// it replaces its former member, one host at a time.
func (m member) startOrJoin(ctx context.Context, h *steps.Host, start op.Fn) error {
	has, err := hasData(ctx, m.cluster, h)
	if err != nil {
		return err
	}
	if has {
		return start(ctx, h)
	}
	others := survivors(m.cluster, h)
	if len(others) == 0 {
		return start(ctx, h)
	}
	return restartLock(h).LockedContext(ctx, func() error {
		if err := m.clear(ctx, h); err != nil {
			return err
		}
		return m.replace(ctx, h, others, start)
	})
}

// serves reports whether the member runs and answers.
func (m member) serves(ctx context.Context, h *steps.Host) (bool, error) {
	u, err := h.Unit(ctx, unit)
	if err != nil || !u.IsActive() {
		return false, err
	}
	err = health(ctx, m.cluster, h)
	if runner.Refused(err) {
		return false, nil
	}
	return err == nil, err
}
