package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mensylisir/kubexm/steps"
)

// Rollback selects what is undone on a host when a step fails there.
type Rollback string

// The kinds of rollback.
const (
	// RollbackStep undoes the failed step; the zero Rollback does the same.
	RollbackStep Rollback = "step"
	// RollbackTask also undoes what this run did before in the same task on that host. A step
	// that was interrupted and has not failed undoes nothing else.
	RollbackTask Rollback = "task"
)

// UndoError reports that a run's changes on a host could not be undone. It is wrapped in a
// *steps.Error with host and step.
type UndoError struct{ Err error }

func (e *UndoError) Error() string { return "not undone: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *UndoError) Unwrap() error { return e.Err }

// rollback undoes the failed steps, newest first. Completed steps stay: the next run continues
// from there.
func (r *run) rollback(ctx context.Context) {
	for _, u := range slices.Backward(r.finished) {
		if u.ok || !u.ran || u.meta.ReadOnly || u.meta.OneWay {
			continue
		}
		u.left = !r.undo(ctx, u)
	}
}

// rollbackTasks rolls back the tasks of the failed steps; hosts run in parallel.
func (r *run) rollbackTasks(ctx context.Context) {
	failed := map[string][]*unit{}
	for _, u := range slices.Backward(r.finished) {
		if u.failed && u.on != "" && !slices.ContainsFunc(failed[u.name()], u.sameTask) {
			failed[u.name()] = append(failed[u.name()], u)
		}
	}
	var wg sync.WaitGroup
	for _, all := range failed {
		wg.Go(func() {
			r.commands <- struct{}{}
			defer func() { <-r.commands }()
			for _, u := range all {
				r.rollbackTask(ctx, u)
			}
		})
	}
	wg.Wait()
}

// sameTask reports whether u and v are steps of one task on one host.
func (u *unit) sameTask(v *unit) bool { return u.node.Task == v.node.Task && u.name() == v.name() }

// rollbackTask undoes what this run did in the task of a failed step on its host, newest
// first. It ends at a step that stays: earlier changes may be required by it.
func (r *run) rollbackTask(ctx context.Context, failed *unit) {
	var done []*unit
	for _, u := range slices.Backward(r.finished) {
		switch {
		case !u.sameTask(failed) || !u.ran || u.meta.ReadOnly:
		case u.left:
			return
		case u.ok && !u.guardUndone:
			done = append(done, u)
		}
	}
	for _, u := range done {
		if u.meta.OneWay || u.meta.Final {
			r.report(u, Event{Outcome: RollbackEnded, Reason: "it cannot be undone and stays, and so do earlier changes of the task on this host"})
			return
		}
		// Reported first: if the run is killed meanwhile, the journal must not list the step
		// as done.
		r.report(u, Event{Outcome: RollingBack})
		if !r.undo(ctx, u) {
			return
		}
	}
}

// undo undoes one step on one host, and reports whether it succeeded.
func (r *run) undo(ctx context.Context, u *unit) bool {
	begin := time.Now()
	err := r.undoOne(ctx, u)
	r.report(u, Event{Outcome: RolledBack, Err: err, Duration: time.Since(begin)})
	if err != nil && r.Rollback == RollbackTask {
		r.mu.Lock()
		r.errs = append(r.errs, &steps.Error{Node: u.node.ID, Host: u.name(), Err: &UndoError{err}})
		r.mu.Unlock()
	}
	return err == nil
}

// undoTime is the default time limit for undoing one step.
const undoTime = 15 * time.Minute

func (r *run) undoOne(ctx context.Context, u *unit) (err error) {
	limit := cmp.Or(r.UndoTimeout, undoTime)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("took longer than %s", limit))
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("rollback panicked: %v", p)
		}
	}()
	return timeoutCause(ctx, u.node.Step.Rollback(steps.WithNode(ctx, u.node.ID), u.host))
}
