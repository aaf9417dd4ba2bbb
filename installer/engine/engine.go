package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// Engine runs graphs. Its fields are set before Run and not changed afterwards.
type Engine struct {
	// Host returns the facade of a host.
	Host func(manifest.Host) *steps.Host
	// Lead returns the current lead. It may be nil for a graph without steps on the lead.
	Lead func(context.Context) (manifest.Host, error)
	// Commands is how many steps run concurrently, Uploads how many of them may transfer much
	// data; at least 1 each.
	Commands, Uploads int
	// Timeout is for steps without their own; 0 is none.
	Timeout time.Duration
	// UndoTimeout limits the time to undo one step on one host; 0 means 15 minutes. Without a
	// limit, a silent host would block an interrupted run.
	UndoTimeout time.Duration
	// Rollback selects what is undone when a step fails.
	Rollback Rollback
	// DryRun checks and reports, and changes nothing.
	DryRun bool
	// Passed are the steps on hosts that are not checked again, as returned by Resumable, by
	// Key.
	Passed map[string]bool
	// Stop, once closed, starts no further steps and lets running ones end. Cancelling Run's
	// context also interrupts the running ones.
	Stop <-chan struct{}
	// Begin is called once, before the first change of a host. Its error fails the step that
	// was about to make the change. May be nil.
	Begin func(context.Context) error
	// Report is called for each event, one at a time; may be nil.
	Report func(Event)
}

// ErrStopped reports that a run was stopped before its end.
var ErrStopped = errors.New("stopped before the end; run the same command again to continue")

// run is one running Run.
type run struct {
	*Engine
	graph    *plan.Graph
	board    *steps.Board
	all      []*unit
	halt     chan struct{} // closed at the first failure, or by Stop
	haltOnce sync.Once
	commands chan struct{}
	uploads  chan struct{}
	found    atomic.Bool // a check reported findings: nothing is changed any more

	begin  chan struct{} // full while Begin runs: a unit that waits for it still notices its timeout
	called bool          // Begin was called; guarded by begin, as begun
	begun  error         // error of Begin

	walks sync.WaitGroup // units that have started and not ended

	mu       sync.Mutex
	errs     []error
	finished []*unit // in the order in which they ended

	reporting sync.Mutex
}

// Run executes g. After the first failure no further step starts, and running steps end. Then
// the failed steps are rolled back, and the undo steps of guards run on the hosts where a
// guarded step failed or, with GuardedFor, was not reached; with RollbackTask the rest of the task is rolled back on these hosts. A
// check with findings prevents every change, but the other checks still run, so that the user
// gets all findings in one report. All failures are returned, joined, each a *steps.Error.
func (e *Engine) Run(ctx context.Context, g *plan.Graph) error {
	r := &run{
		Engine: e, graph: g, board: &steps.Board{}, halt: make(chan struct{}),
		commands: make(chan struct{}, max(e.Commands, 1)), uploads: make(chan struct{}, max(e.Uploads, 1)), begin: make(chan struct{}, 1),
	}
	over := make(chan struct{})
	defer close(over)
	if e.Stop != nil {
		go func() {
			select {
			case <-e.Stop:
				r.stop()
			case <-over:
			}
		}()
	}
	r.all = r.units()
	var first []*unit
	for _, u := range r.all { // before any of them ends
		if u.waits.Load() == 0 {
			first = append(first, u)
		}
	}
	for _, u := range first {
		r.start(ctx, u)
	}
	r.walks.Wait()
	if ended := len(r.errs) > 0 || r.stopped() || ctx.Err() != nil; ended && !e.DryRun {
		r.rollback(context.WithoutCancel(ctx))
		r.runGuards(context.WithoutCancel(ctx))
		if e.Rollback == RollbackTask {
			r.rollbackTasks(context.WithoutCancel(ctx))
		}
	}
	return r.result(ctx)
}

func (r *run) stop() { r.haltOnce.Do(func() { close(r.halt) }) }

func (r *run) stopped() bool {
	select {
	case <-r.halt:
		return true
	default:
		return false
	}
}

// place makes u run on h.
func (r *run) place(u *unit, h *steps.Host) {
	u.on = h.Name
	u.host = h.InSet(u.node.Set).ForStep(*u.meta).WithReport(func(f steps.Finding) { r.report(u, Event{Outcome: Found, Finding: &f}) }).
		WithWaitReport(func(what string) { r.report(u, Event{Outcome: Waiting, Reason: what}) })
	u.host.DryRun = r.DryRun
}

// lead makes u run on the current lead.
func (r *run) lead(ctx context.Context, u *unit) error {
	m, err := r.Lead(ctx)
	if err != nil {
		return err
	}
	if u.host == nil || u.on != m.Name { // undo data is stored in the facade of the host
		r.place(u, r.Host(m).WithBoard(r.board))
	}
	return nil
}

// walk waits for a free slot, and runs u, if what it depends on has ended well. It takes a slot
// only then: otherwise waiting steps could fill all slots.
func (r *run) walk(ctx context.Context, u *unit) {
	for _, d := range u.lane {
		if !d.ok && (!d.found || !u.check()) {
			return
		}
		u.unsure = u.unsure || d.unsure
	}
	for _, b := range u.all {
		if b.lost || b.found && !u.check() {
			return
		}
		u.unsure = u.unsure || b.unsure
	}
	if r.Passed[Key(u.node.ID, u.at)] {
		u.ok = true
		r.report(u, Event{Outcome: Resumed})
		return
	}
	slots := []chan struct{}{r.commands}
	if u.meta.Upload {
		slots = []chan struct{}{r.uploads, r.commands}
	}
	for _, s := range slots {
		select {
		case s <- struct{}{}:
			defer func() { <-s }()
		case <-r.halt:
			return
		case <-ctx.Done():
			return
		}
	}
	if r.stopped() || ctx.Err() != nil || (r.found.Load() && !u.check()) {
		return
	}
	r.perform(ctx, u)
}

// perform runs u, which has its slots. It is apart from walk, because thousands of units may wait there for
// a slot, with a stack of the size that walk needs.
func (r *run) perform(ctx context.Context, u *unit) {
	begin := time.Now()
	if u.from != nil {
		r.place(u, u.from)
	} else if err := r.lead(ctx, u); err != nil {
		r.end(ctx, u, Event{Outcome: Failed, Duration: time.Since(begin), Err: err})
		return
	}
	r.report(u, Event{Outcome: Started})
	outcome, changes, err := r.try(ctx, u)
	if err != nil && ctx.Err() == nil {
		err = steps.ExplainDiskFull(steps.WithNode(ctx, u.node.ID), u.host, err)
	}
	r.end(ctx, u, Event{Outcome: outcome, Changes: changes, Duration: time.Since(begin), Err: err})
}

// end records how u ended.
func (r *run) end(ctx context.Context, u *unit, e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finished = append(r.finished, u)
	switch {
	case e.Err == nil:
		u.ok = true
		u.unsure = u.unsure || e.Outcome == WouldRun
	case ctx.Err() != nil && errors.Is(e.Err, context.Canceled):
		e.Outcome = Interrupted
		r.errs = append(r.errs, e.Err)
		r.stop()
	default:
		e.Outcome, u.failed = Failed, true
		e.Err = &steps.Error{Node: u.node.ID, Host: u.name(), Err: e.Err}
		r.errs = append(r.errs, e.Err)
		var findings steps.Findings
		if u.found = u.check() && errors.As(e.Err, &findings); u.found {
			r.found.Store(true)
		} else {
			r.stop()
		}
	}
	r.report(u, e)
	if !u.ran || u.ok && r.Rollback != RollbackTask { // nothing of it is undone through its facade
		u.host = nil
	}
}

func (r *run) result(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case len(r.errs) > 0:
		return errors.Join(r.errs...)
	case r.stopped():
		return ErrStopped
	}
	return nil
}

func (r *run) report(u *unit, e Event) {
	if r.Report == nil {
		return
	}
	r.reporting.Lock()
	defer r.reporting.Unlock()
	e.Time, e.Module, e.Task, e.Node, e.Step, e.Host = time.Now(), u.node.Module, u.node.Task, u.node.ID, u.meta.Name, u.name()
	if e.Host != u.at {
		e.PlanHost = u.at
	}
	if e.Err != nil {
		e.Error = e.Err.Error()
	}
	r.Report(e)
}
