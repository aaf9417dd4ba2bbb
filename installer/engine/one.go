package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// try runs u as often as its step allows.
func (r *run) try(ctx context.Context, u *unit) (Outcome, []string, error) {
	for attempt := 0; ; attempt++ {
		outcome, changes, err := r.one(ctx, u)
		var finding steps.Findings
		if err == nil || attempt >= u.meta.Retry.Times || ctx.Err() != nil || r.stopped() || errors.As(err, &finding) {
			return outcome, changes, err
		}
		r.report(u, Event{Outcome: Retried, Err: err})
		t := time.NewTimer(u.meta.Retry.Wait)
		select {
		case <-t.C:
		case <-r.halt:
		case <-ctx.Done():
		}
		t.Stop()
		if plan.IsLead(manifest.Host{Name: u.at}) { // the master may be what fails
			if err := r.lead(ctx, u); err != nil {
				return outcome, changes, err
			}
		}
	}
}

// one looks, acts and looks again. A step that panics has failed, and no more
// than that: others on other hosts still end in order.
func (r *run) one(ctx context.Context, u *unit) (outcome Outcome, changes []string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("step panicked: %v\n%s", p, debug.Stack())
		}
	}()
	ctx = steps.WithNode(ctx, u.node.ID)
	if timeout := max(u.meta.Timeout, 0); timeout > 0 || r.Timeout > 0 {
		if timeout == 0 {
			timeout = r.Timeout
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("took longer than %s", timeout))
		defer cancel()
	}
	verdict, err := u.node.Step.Precheck(ctx, u.host)
	if r.DryRun && !u.check() {
		outcome, changes, err = look(ctx, u, verdict, err)
		return outcome, changes, because(ctx, err)
	}
	if r.DryRun && u.unsure { // a check, of what is perhaps not there yet
		defer func() {
			if err != nil && ctx.Err() == nil {
				outcome, err = Would, nil
			}
		}()
	}
	if err != nil {
		return "", nil, because(ctx, fmt.Errorf("precheck: %w", err))
	}
	if verdict == steps.Done && u.host.Wrote() {
		return passed(u, Skipped), nil, nil
	}
	if err := r.first(ctx, u); err != nil {
		return "", nil, because(ctx, err)
	}
	u.ran = true
	if err := u.node.Step.Run(ctx, u.host); err != nil {
		return "", nil, because(ctx, err)
	}
	if !u.meta.Always {
		if verdict, err = u.node.Step.Precheck(ctx, u.host); err != nil || verdict != steps.Done {
			return "", nil, because(ctx, errors.Join(errors.New("ran, and the host is still not in the wanted state"), err))
		}
	}
	if !u.host.Wrote() {
		return "", nil, errors.New("ran, and did not give the outputs that it declares")
	}
	return passed(u, Ran), nil, nil
}

// first calls Begin before the first change of a host.
func (r *run) first(ctx context.Context, u *unit) error {
	if r.Begin == nil || u.meta.LooksOnly || u.meta.Here {
		return nil
	}
	r.begin.Do(func() { r.begun = r.Begin(ctx) })
	return r.begun
}

// passed is the outcome of a step that ended well: nothing ran where it only looks.
func passed(u *unit, o Outcome) Outcome {
	if u.meta.LooksOnly {
		return Looked
	}
	return o
}

// look is one in a dry run, for all but checks, which look anyway: what would
// change, without changing it. What steps before it would bring is not there, so
// one that cannot even look without that is only said to run.
func look(ctx context.Context, u *unit, v steps.Verdict, err error) (Outcome, []string, error) {
	lost := func(err error) bool { return err != nil && (!u.unsure || ctx.Err() != nil) }
	if lost(err) {
		return "", nil, fmt.Errorf("precheck: %w", err)
	}
	if err == nil && v == steps.Done {
		return passed(u, Skipped), nil, nil
	}
	d, ok := u.node.Step.(steps.Differ)
	if !ok {
		return Would, nil, nil
	}
	changes, err := d.Diff(ctx, u.host)
	if lost(err) {
		return "", nil, err
	}
	return Would, changes, nil
}

// because puts the reason of a timeout in place of "context deadline exceeded".
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
