package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

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
	if timeout := max(u.meta.Timeout, 0); timeout > 0 || r.Timeout > 0 {
		if timeout == 0 {
			timeout = r.Timeout
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("took longer than %s", timeout))
		defer cancel()
	}
	verdict, err := u.node.Step.Precheck(ctx, u.host)
	if err != nil {
		return "", nil, because(ctx, fmt.Errorf("precheck: %w", err))
	}
	if r.DryRun {
		return r.look(ctx, u, verdict)
	}
	if verdict == steps.Done && u.host.Wrote() {
		return Skipped, nil, nil
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
	return Ran, nil, nil
}

// look is one in a dry run: what would change, without changing it. Outputs of
// steps that did not run are not there, so a step that cannot even look without
// them is only said to run.
func (r *run) look(ctx context.Context, u *unit, v steps.Verdict) (Outcome, []string, error) {
	if v == steps.Done {
		return Skipped, nil, nil
	}
	d, ok := u.node.Step.(steps.Differ)
	if !ok {
		return Would, nil, nil
	}
	changes, err := d.Diff(ctx, u.host)
	return Would, changes, err
}

// because puts the reason of a timeout in place of "context deadline exceeded".
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// rollback undoes, newest first, the steps that failed half way and, where the
// pipeline says so, what their tasks had done before. On a host it stops at the
// first step that cannot be undone.
func (r *run) rollback(ctx context.Context) {
	failed := map[string]bool{}
	for _, u := range r.finished {
		if !u.ok {
			failed[u.node.Task] = true
		}
	}
	stopped := map[string]bool{}
	for _, u := range slices.Backward(r.finished) {
		lane := u.node.Task + "@" + u.host.Name
		undo := !u.ok || (u.node.UndoTask() && failed[u.node.Task])
		if !undo || !u.ran || stopped[lane] {
			continue
		}
		if u.meta.OneWay {
			stopped[lane] = true
			continue
		}
		begin := time.Now()
		err := undoOne(ctx, u)
		r.report(u, Event{Outcome: RolledBack, Err: err, Took: time.Since(begin)})
	}
}

func undoOne(ctx context.Context, u *unit) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("rollback panicked: %v", p)
		}
	}()
	return u.node.Step.Rollback(ctx, u.host)
}
