package etcd

import (
	"context"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// member is the unit of one. Members are started side by side; one that serves is
// restarted only while all others do, and they wait for it: the steps of all hosts
// run at once, and a setting that no member starts with would end the store.
type member struct {
	op.Unit

	cluster *manifest.Cluster
}

// moment is how long the others have to be healthy before one is restarted: whoever
// was restarted before it has answered already.
const moment = 15 * time.Second

// Want starts the unit, or restarts it with care.
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
			return m.begin(ctx, h, restart)
		}
		return turns(h).InTurn(ctx, func() error {
			if err := steps.Until(ctx, moment, time.Second, func(ctx context.Context) error { return health(ctx, m.cluster, h, "--cluster") }); err != nil {
				return steps.Advise(err, "another member is not healthy, and this one was not restarted: see `journalctl -u %s` on the other etcd hosts", unit)
			}
			if err := restart(ctx, h); err != nil {
				return err
			}
			return answers(ctx, m.cluster, h)
		})
	}
	return change, nil
}

// begin starts a member that does not serve. One without data, of a store that has
// some, takes the place of the one that it was, and one at a time does.
func (m member) begin(ctx context.Context, h *steps.Host, start op.Fn) error {
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
	return turns(h).InTurn(ctx, func() error {
		if err := m.clear(ctx, h); err != nil {
			return err
		}
		return m.replace(ctx, h, others, start)
	})
}

// serves tells whether the member runs and answers.
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
