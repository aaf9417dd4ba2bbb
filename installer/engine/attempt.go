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
		outcome, changes, err := r.runOnce(ctx, u)
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
		if plan.IsLead(manifest.Host{Name: u.at}) { // the lead itself may be what fails
			if err := r.lead(ctx, u); err != nil {
				return outcome, changes, err
			}
		}
	}
}

// runOnce checks, runs and checks again. A panic fails only this step: others on other hosts still
// end in order.
func (r *run) runOnce(ctx context.Context, u *unit) (outcome Outcome, changes []string, err error) {
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
		outcome, changes, err = preview(ctx, u, verdict, err)
		return outcome, changes, timeoutCause(ctx, err)
	}
	if r.DryRun && u.unsure { // the object of the check may not exist yet
		defer func() {
			if err != nil && ctx.Err() == nil {
				outcome, err = WouldRun, nil
			}
		}()
	}
	if err != nil {
		return "", nil, timeoutCause(ctx, fmt.Errorf("precheck: %w", err))
	}
	if verdict == steps.Done && u.host.Wrote() {
		return outcomeOf(u, Skipped), nil, nil
	}
	if err := r.beginOnce(ctx, u); err != nil {
		return "", nil, timeoutCause(ctx, err)
	}
	u.ran = true
	if err := u.node.Step.Run(ctx, u.host); err != nil {
		return "", nil, timeoutCause(ctx, err)
	}
	if !u.meta.Always {
		if verdict, err = u.node.Step.Precheck(ctx, u.host); err != nil || verdict != steps.Done {
			return "", nil, timeoutCause(ctx, errors.Join(errors.New("ran, but the host is still not in the desired state"), err))
		}
	}
	if !u.host.Wrote() {
		return "", nil, errors.New("ran, but did not produce the outputs that it declares")
	}
	return outcomeOf(u, Ran), nil, nil
}

// beginOnce calls Begin before the first change of a host.
func (r *run) beginOnce(ctx context.Context, u *unit) error {
	if r.Begin == nil || u.meta.ReadOnly || u.meta.WorkdirOnly {
		return nil
	}
	select {
	case r.begin <- struct{}{}:
		defer func() { <-r.begin }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if !r.called {
		r.called, r.begun = true, r.Begin(ctx)
	}
	return r.begun
}

// outcomeOf returns the outcome of a successful step: Checked for one that changes nothing.
func outcomeOf(u *unit, o Outcome) Outcome {
	if u.meta.ReadOnly {
		return Checked
	}
	return o
}

// preview is runOnce for dry runs, except for checks, which run anyway: it reports what would change.
// The results of earlier steps do not exist, so a step that cannot be checked without them is
// only reported to run.
func preview(ctx context.Context, u *unit, v steps.Verdict, err error) (Outcome, []string, error) {
	lost := func(err error) bool { return err != nil && (!u.unsure || ctx.Err() != nil) }
	if lost(err) {
		return "", nil, fmt.Errorf("precheck: %w", err)
	}
	if err == nil && v == steps.Done {
		return outcomeOf(u, Skipped), nil, nil
	}
	d, ok := u.node.Step.(steps.Differ)
	if !ok {
		return WouldRun, nil, nil
	}
	changes, err := d.Diff(ctx, u.host)
	if lost(err) {
		return "", nil, err
	}
	return WouldRun, changes, nil
}

// timeoutCause adds the reason of a timeout to "context deadline exceeded".
func timeoutCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
