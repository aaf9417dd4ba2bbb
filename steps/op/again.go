package op

import (
	"context"
	"fmt"
	"time"

	"github.com/mensylisir/kubexm/steps"
)

// Again returns a step whose effect cannot be observed on the host, such as a restart.
// It is Done once the run has executed it: a run that resumes from its journal skips the
// steps that the journal lists as done, and a new run repeats all of them. act itself
// must verify its effect. A plan contains such a step at most once per host.
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

// startTimeout is how long a unit may take to become active after a restart.
const startTimeout = time.Minute

// RestartUnit restarts an existing unit and waits until it is active with another main
// process. The timeout is one minute.
func RestartUnit(ctx context.Context, h *steps.Host, name string) error {
	before, err := h.Unit(ctx, name)
	if err != nil {
		return err
	}
	if !before.Found() {
		return steps.Advise(fmt.Errorf("%s does not exist on %s", name, h.Name), "kubexm installs this unit on every cluster: check `systemctl status %s`, then run install again", name)
	}
	if err := h.UnitRestart(ctx, name); err != nil {
		return err
	}
	for end := time.Now().Add(startTimeout); ; {
		now, err := h.Unit(ctx, name)
		if err != nil {
			return err
		}
		if now.IsActive() && now.MainPID != before.MainPID {
			return nil
		}
		if time.Now().After(end) {
			return steps.Advise(fmt.Errorf("%s is %s %s after its restart", name, now.Active, startTimeout), "see `journalctl -u %s` on %s", name, h.Name)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
