package op

import (
	"context"
	"fmt"
	"time"

	"github.com/mensylisir/kubexm/steps"
)

// Again is a step whose work leaves no trace on the host, such as a restart: it is done
// once the run has done it. So a run that goes on by the journal passes over those that
// were seen done, and a new run does all of them again. act itself looks whether its work
// came about. A plan has such a step once for each host.
func Again(name string, act Fn, opts ...Option) steps.Step {
	done := steps.NewKey[bool](name)
	m := steps.Meta{Name: name, Writes: []steps.AnyKey{done}, Timeout: 5 * time.Minute, Risk: steps.Disruptive}
	for _, o := range opts {
		o(&m)
	}
	return &Do{
		M:    m,
		Done: func(_ context.Context, h *steps.Host) (bool, error) { return h.Wrote(), nil },
		Act: func(ctx context.Context, h *steps.Host) error {
			if err := act(ctx, h); err != nil {
				return err
			}
			return done.On(h.Name).Put(h, true)
		},
	}
}

// startTime is how long a unit may take to become active after a restart.
const startTime = time.Minute

// RestartUnit restarts a unit that exists, and sees that another process runs then.
func RestartUnit(ctx context.Context, h *steps.Host, name string) error {
	before, err := h.Unit(ctx, name)
	if err != nil {
		return err
	}
	if !before.Found() {
		return steps.Advise(fmt.Errorf("%s does not exist on %s", name, h.Name), "a cluster that kubexm made has it: see `systemctl status %s`, and run install again", name)
	}
	if err := h.UnitRestart(ctx, name); err != nil {
		return err
	}
	for end := time.Now().Add(startTime); ; {
		now, err := h.Unit(ctx, name)
		if err != nil {
			return err
		}
		if now.IsActive() && now.MainPID != before.MainPID {
			return nil
		}
		if time.Now().After(end) {
			return steps.Advise(fmt.Errorf("%s is %s %s after its restart", name, now.Active, startTime), "see `journalctl -u %s` on %s", name, h.Name)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
