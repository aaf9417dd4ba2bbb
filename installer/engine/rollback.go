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

// Rollback says what a step that fails on a host takes with it there.
type Rollback string

// The rollbacks.
const (
	// RollbackStep undoes the step that failed; the zero Rollback does so, too.
	RollbackStep Rollback = "step"
	// RollbackTask undoes what this run did before in the same task on that host, too. A step
	// that was broken off, and has not failed, takes nothing with it.
	RollbackTask Rollback = "task"
)

// UndoError says that what a run did on a host could not be undone. It is in a *steps.Error
// that says where.
type UndoError struct{ Err error }

func (e *UndoError) Error() string { return "not undone: " + e.Err.Error() }

// Unwrap gives the cause.
func (e *UndoError) Unwrap() error { return e.Err }

// rollback undoes, newest first, the steps that failed half way. What was done
// before them stays: the next run goes on from there.
func (r *run) rollback(ctx context.Context) {
	for _, u := range slices.Backward(r.finished) {
		if u.ok || !u.ran || u.meta.LooksOnly || u.meta.OneWay {
			continue
		}
		u.left = !r.undo(ctx, u)
	}
}

// rollbackTasks goes on with the tasks of the steps that failed, host by host and the hosts
// side by side.
func (r *run) rollbackTasks(ctx context.Context) {
	failed := map[string][]*unit{}
	for _, u := range slices.Backward(r.finished) {
		if u.failed && u.host != nil && !slices.ContainsFunc(failed[u.name()], u.sameTask) {
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

// sameTask tells whether u and v are steps of one task on one host.
func (u *unit) sameTask(v *unit) bool { return u.node.Task == v.node.Task && u.name() == v.name() }

// rollbackTask undoes, newest first, what this run did in the task of a step that failed,
// on its host. It ends where something is left as it is: what came before that may be what
// it stands on.
func (r *run) rollbackTask(ctx context.Context, failed *unit) {
	var done []*unit
	for _, u := range slices.Backward(r.finished) {
		switch {
		case !u.sameTask(failed) || !u.ran || u.meta.LooksOnly:
		case u.left:
			return
		case u.ok && !u.wentBack:
			done = append(done, u)
		}
	}
	for _, u := range done {
		if u.meta.OneWay || u.meta.Final {
			r.report(u, Event{Outcome: Kept, For: "it cannot be undone, and stays; so does what the task did here before it"})
			return
		}
		// Said before it is so: a run that is killed meanwhile must not leave a journal that
		// holds it done.
		r.report(u, Event{Outcome: RollingBack})
		if !r.undo(ctx, u) {
			return
		}
	}
}

// undo undoes one step on one host, and tells whether that ended well.
func (r *run) undo(ctx context.Context, u *unit) bool {
	begin := time.Now()
	err := r.undoOne(ctx, u)
	r.report(u, Event{Outcome: RolledBack, Err: err, Took: time.Since(begin)})
	if err != nil && r.Rollback == RollbackTask {
		r.mu.Lock()
		r.errs = append(r.errs, &steps.Error{Node: u.node.ID, Host: u.name(), Err: &UndoError{err}})
		r.mu.Unlock()
	}
	return err == nil
}

// undoTime is how long undoing one step may take, unless the engine says otherwise.
const undoTime = 15 * time.Minute

func (r *run) undoOne(ctx context.Context, u *unit) (err error) {
	limit := cmp.Or(r.Undo, undoTime)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("took longer than %s", limit))
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("rollback panicked: %v", p)
		}
	}()
	return because(ctx, u.node.Step.Rollback(steps.WithNode(ctx, u.node.ID), u.host))
}
