package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/steps"
)

// carry runs a plan on hosts and gives the path of its journal, as
// installer.Session does.
type carry func(context.Context, *plan.Graph, installer.RunOptions) (journal string, err error)

// carryOut runs the plan of s and shows what happens.
func (a *app) carryOut(ctx context.Context, f *siteFlags, s *site, run carry) error {
	r := a.newRunReport(f, s)
	end := r.begin()
	a.orderly.Store(true)
	journal, err := run(ctx, s.graph, installer.RunOptions{
		DryRun: f.dryRun, Parallel: f.parallel, Stop: a.stop, Report: r.event, Version: ownVersion(), Resume: f.resume, Resumed: r.resumed, Skipped: s.skipped,
		Rollback: engine.Rollback(f.rollback),
	})
	a.orderly.Store(false)
	end()
	s.journal = journal
	s.tally, s.took = r.view.counted(), time.Since(r.view.begin)
	switch {
	case err == nil:
		r.done(journal, s.took)
		return nil
	case ctx.Err() != nil:
		r.cut("broken off", journal)
		return &coded{code: exitInterrupted, error: errSaid}
	case errors.Is(err, engine.ErrStopped):
		r.cut("stopped", journal)
		return &coded{code: exitInterrupted, error: errSaid}
	}
	return r.failed(err, journal)
}

// runReport tells a person, or a program, what a run does.
type runReport struct {
	*app
	site   *site
	view   *runView
	dry    dryRun
	dryRun bool
	live   bool // a frame on a terminal; else lines
	width  int  // of the column of hosts
	checks map[string]bool
	events *runLines // of --progress json

	mu       sync.Mutex
	warnings []steps.Finding // not said yet
	last     time.Time       // when a line was printed
}

func (a *app) newRunReport(f *siteFlags, s *site) *runReport {
	r := &runReport{app: a, site: s, dryRun: f.dryRun, live: a.live(), checks: map[string]bool{}}
	now := time.Now()
	r.last = now
	r.view = &runView{
		title: s.graph.Name + " " + s.cluster.Metadata.Name, now: time.Now, begin: now, busy: map[string]*busy{},
		pressed: func() int { return int(a.pressed.Load()) },
	}
	for _, n := range s.graph.Nodes {
		m := n.Step.Meta()
		r.checks[n.ID] = m.LooksOnly && m.Always
		r.view.tally.Total += len(n.Hosts)
		for _, h := range n.Hosts {
			r.width = min(max(r.width, len(h.Name)), 24)
		}
	}
	return r
}

// begin starts to show the run, until the function that it gives is called.
func (r *runReport) begin() (end func()) {
	if r.lines != nil || r.display.progress == progressNone {
		return func() {}
	}
	if r.display.progress == progressJSON {
		r.events = newRunLines(r.err, progressJSON)
		return func() {}
	}
	fmt.Fprintf(r.screen, "%s: %s on %s\n", r.view.title, count(r.view.tally.Total, "step"), count(len(r.site.cluster.Spec.Hosts), "host"))
	if s := r.site.skipped; len(s) > 0 {
		fmt.Fprintf(r.screen, "checks left out: %s\n", shortNames(s))
	}
	if r.live {
		return r.screen.show(r.view.frame)
	}
	over, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		r.signs(over)
	}()
	return func() {
		close(over)
		<-gone
	}
}

// quietFor is how long a run without a terminal says nothing before it tells
// what it waits for.
const quietFor = 30 * time.Second

// signs tells, where lines are printed, that a long step still runs.
func (r *runReport) signs(over <-chan struct{}) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-over:
			return
		case <-t.C:
		}
		r.mu.Lock()
		quiet := time.Since(r.last)
		r.mu.Unlock()
		if bs := r.view.working(); quiet >= quietFor && len(bs) > 0 {
			more := ""
			if len(bs) > 1 {
				more = fmt.Sprintf(", and %d more", len(bs)-1)
			}
			r.say(fmt.Sprintf("still at   %-*s  %s (%s)%s", r.width, bs[0].host, bs[0].step, brief(time.Since(bs[0].since)), more))
		}
	}
}

// say prints one line of the run, with the time and how far it is.
func (r *runReport) say(line string) {
	t := r.view.counted()
	fmt.Fprintf(r.screen, "%6s  %*d/%d  %s\n", brief(time.Since(r.view.begin)), len(fmt.Sprint(t.Total)), t.ended(), t.Total, line)
	r.mu.Lock()
	r.last = time.Now()
	r.mu.Unlock()
}

// event takes one event of the engine.
func (r *runReport) event(e engine.Event) {
	if e.Finding != nil {
		r.warn(*e.Finding)
		return
	}
	r.view.event(e)
	r.dry.event(e)
	switch {
	case r.lines != nil:
		r.lines.event(e)
		return
	case r.events != nil:
		r.events.event(e)
		return
	case r.display.progress == progressNone:
		return
	}
	if !r.checks[e.Node] {
		r.flush()
	}
	switch e.Outcome {
	case engine.Started:
		return
	case engine.Skipped, engine.Resumed, engine.Looked, engine.RollingBack, engine.Would: // a dry run tells all at its end
		if !r.verbose {
			return
		}
	}
	if len(findings(e.Err)) > 0 && !r.verbose { // they become one table
		return
	}
	line := fmt.Sprintf("%-12s  %-*s  %s", e.Outcome, r.width, e.Host, e.Node)
	if e.Took >= 100*time.Millisecond {
		line += "  (" + brief(e.Took) + ")"
	}
	if e.For != "" {
		line += ": " + firstLine(e.For)
	}
	if e.Error != "" && e.Outcome != engine.Failed { // a failure is told at the end
		line += ": " + firstLine(e.Error)
	}
	r.say(line)
}

// warn takes what a check found and let pass.
func (r *runReport) warn(x steps.Finding) {
	if r.lines != nil {
		r.lines.finding(x)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warnings = append(r.warnings, x)
}

// flush prints the warnings that are there: before the first change, or at the end.
func (r *runReport) flush() {
	r.mu.Lock()
	ws := r.warnings
	r.warnings = nil
	r.mu.Unlock()
	if len(ws) > 0 {
		printFindings(r.screen, ws, r.site.cluster, r.tableWidth(r.err))
	}
}

// failed prints every failure as a block: what, where, what to do, and where the
// whole story is.
func (r *runReport) failed(err error, journal string) error {
	c, code, next := r.site.cluster, exitFailed, "run the same command again: it goes on where it stopped"
	found, fs := findings(err), failures(err, r.site.graph, c)
	if r.lines != nil {
		for _, x := range sortedFindings(found, c) {
			r.lines.finding(x)
		}
		for _, f := range fs {
			r.lines.failure(f)
		}
	}
	if len(found) > 0 {
		r.mu.Lock()
		all := slices.Concat(found, r.warnings)
		r.warnings = nil
		r.mu.Unlock()
		printFindings(r.screen, all, c, r.tableWidth(r.err))
		next = "mend what the checks found, then run the same command again"
		if t := r.view.counted(); t.Ran == 0 && len(fs) == 0 {
			next = "nothing was changed; " + next
		}
		if len(fs) == 0 {
			code = exitPreflight
		}
	}
	r.flush()
	for _, f := range grouped(fs, c) {
		f.writeTo(r.screen, c)
	}
	if journal != "" { // a run that was kept away wrote none
		fmt.Fprintf(r.screen, "  log   %s\n", journal)
	}
	fmt.Fprintf(r.screen, "next: %s\n", next)
	return &coded{code: code, error: errSaid}
}

// cut tells of a run that was stopped from outside.
func (r *runReport) cut(how, journal string) {
	r.flush()
	t := r.view.counted()
	fmt.Fprintf(r.screen, "%s: %s after %s: %d of %s ended\n  log   %s\nnext: run the same command again: it goes on where it stopped\n",
		r.view.title, how, brief(time.Since(r.view.begin)), t.ended()-t.Failed, count(t.Total, "step"), journal)
}

// done says how a run ended that went well.
func (r *runReport) done(journal string, took time.Duration) {
	r.flush()
	t, g, c := r.view.counted(), r.site.graph, r.site.cluster
	switch {
	case r.lines != nil:
	case r.dryRun:
		r.dry.writeTo(r.out, g, c)
		fmt.Fprintf(r.out, "%s: %s would run on %s, %d are done already, %s passed; nothing was changed\n",
			g.Name, count(t.Would, "step"), count(len(r.dry.would), "host"), t.Done, count(t.Checked, "check"))
	default:
		fmt.Fprintf(r.out, "%s of cluster %s: done in %s; %s\n", g.Name, c.Metadata.Name, brief(took), t.said())
		if g.Keeps {
			fmt.Fprintf(r.out, "  next  KUBECONFIG=%s kubectl get nodes\n", r.site.kubeconfig)
		}
		fmt.Fprintf(r.out, "  log   %s\n", journal)
	}
}

func firstLine(s string) string {
	for i, c := range s {
		if c == '\n' {
			return s[:i]
		}
	}
	return s
}
