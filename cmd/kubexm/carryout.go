package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/report"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/steps"
)

// carry runs a plan on hosts and gives the path of its journal, as
// installer.Session does.
type carry func(context.Context, *plan.Graph, installer.RunOptions) (journal string, err error)

// carryOut runs the plan of s and shows what happens.
func (a *app) carryOut(ctx context.Context, f *siteFlags, s *siteRun, run carry) error {
	r := a.newRunReport(s)
	end := r.begin()
	a.orderly.Store(true)
	o := s.RunOptions()
	o.Report, o.Resume, o.Resumed, o.Rollback = r.event, f.resume, r.resumed, engine.Rollback(f.rollback)
	journal, err := run(ctx, s.Graph, o)
	a.orderly.Store(false)
	end()
	s.journal = journal
	s.tally, s.took = r.view.Counted(), r.view.Took()
	switch {
	case err == nil:
		r.done(journal, s.took)
		return nil
	case ctx.Err() != nil:
		r.cut("broken off", journal)
		return &refusal.Error{Kind: refusal.Interrupted, Err: errSaid}
	case errors.Is(err, engine.ErrStopped):
		r.cut("stopped", journal)
		return &refusal.Error{Kind: refusal.Interrupted, Err: errSaid}
	}
	return r.failed(err, journal)
}

// runReport tells a person, or a program, what a run does.
type runReport struct {
	*app
	site   *siteRun
	view   *console.RunView
	dry    report.DryRun
	dryRun bool
	live   bool // a frame on a terminal; else lines
	width  int  // of the column of hosts
	checks map[string]bool
	events *console.Lines // of --progress json

	mu       sync.Mutex
	warnings []steps.Finding // not said yet
	last     time.Time       // when a line was printed
}

func (a *app) newRunReport(s *siteRun) *runReport {
	r := &runReport{app: a, site: s, dryRun: s.DryRun, live: a.live(), checks: map[string]bool{}, last: time.Now()}
	total := 0
	for _, n := range s.Graph.Nodes {
		m := n.Step.Meta()
		r.checks[n.ID] = m.LooksOnly && m.Always
		total += len(n.Hosts)
		for _, h := range n.Hosts {
			r.width = min(max(r.width, len(h.Name)), 24)
		}
	}
	r.view = console.NewRunView(s.Graph.Name+" "+s.Cluster.Metadata.Name, total, func() int { return int(a.pressed.Load()) })
	return r
}

// begin starts to show the run, until the function that it gives is called.
func (r *runReport) begin() (end func()) {
	if r.lines != nil || r.display.Progress == console.None {
		return func() {}
	}
	if r.display.Progress == console.JSON {
		r.events = console.NewLines(r.err, console.JSON)
		return func() {}
	}
	fmt.Fprintf(r.screen, "%s: %s on %s\n", r.view.Title(), console.Count(r.view.Counted().Total, "step"), console.Count(len(r.site.Cluster.Spec.Hosts), "host"))
	if s := r.site.Skipped; len(s) > 0 {
		fmt.Fprintf(r.screen, "checks left out: %s\n", shortNames(s))
	}
	if r.live {
		return r.screen.Show(r.view.Frame)
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
		if host, step, since, others, ok := r.view.Longest(); quiet >= quietFor && ok {
			more := ""
			if others > 0 {
				more = fmt.Sprintf(", and %d more", others)
			}
			r.say(fmt.Sprintf("still at   %-*s  %s (%s)%s", r.width, host, step, console.Brief(since), more))
		}
	}
}

// say prints one line of the run, with the time and how far it is.
func (r *runReport) say(line string) {
	t := r.view.Counted()
	fmt.Fprintf(r.screen, "%6s  %*d/%d  %s\n", console.Brief(r.view.Took()), len(fmt.Sprint(t.Total)), t.Ended(), t.Total, line)
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
	r.view.Event(e)
	r.dry.Event(e)
	switch {
	case r.lines != nil:
		r.lines.Event(e)
		return
	case r.events != nil:
		r.events.Event(e)
		return
	case r.display.Progress == console.None:
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
	if found, _ := steps.Split(e.Err); len(found) > 0 && !r.verbose { // they become one table
		return
	}
	line := fmt.Sprintf("%-12s  %-*s  %s", e.Outcome, r.width, e.Host, e.Node)
	if e.Took >= 100*time.Millisecond {
		line += "  (" + console.Brief(e.Took) + ")"
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
		r.lines.Finding(x)
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
		console.PrintFindings(r.screen, ws, r.site.Cluster, r.tableWidth(r.err))
	}
}

// failed prints every failure as a block: what, where, what to do, and where the
// whole story is.
func (r *runReport) failed(err error, journal string) error {
	c, kind, next := r.site.Cluster, refusal.Failed, "run the same command again: it goes on where it stopped"
	fs := report.Failures(err, r.site.Graph, c)
	found, _ := steps.Split(err)
	if r.lines != nil {
		for _, x := range report.SortedFindings(found, c) {
			r.lines.Finding(x)
		}
		for _, f := range fs {
			r.lines.Failure(f)
		}
	}
	if len(found) > 0 {
		r.mu.Lock()
		all := slices.Concat(found, r.warnings)
		r.warnings = nil
		r.mu.Unlock()
		console.PrintFindings(r.screen, all, c, r.tableWidth(r.err))
		next = "mend what the checks found, then run the same command again"
		if t := r.view.Counted(); t.Ran == 0 && len(fs) == 0 {
			next = "nothing was changed; " + next
		}
		if len(fs) == 0 {
			kind = refusal.Hosts
		}
	}
	r.flush()
	for _, f := range report.Grouped(fs, c) {
		console.PrintFailure(r.screen, f, c)
	}
	if journal != "" { // a run that was kept away wrote none
		fmt.Fprintf(r.screen, "  log   %s\n", journal)
	}
	fmt.Fprintf(r.screen, "next: %s\n", next)
	return &refusal.Error{Kind: kind, Err: errSaid}
}

// cut tells of a run that was stopped from outside.
func (r *runReport) cut(how, journal string) {
	r.flush()
	t := r.view.Counted()
	fmt.Fprintf(r.screen, "%s: %s after %s: %d of %s ended\n  log   %s\nnext: run the same command again: it goes on where it stopped\n",
		r.view.Title(), how, console.Brief(r.view.Took()), t.Ended()-t.Failed, console.Count(t.Total, "step"), journal)
}

// done says how a run ended that went well.
func (r *runReport) done(journal string, took time.Duration) {
	r.flush()
	t, g, c := r.view.Counted(), r.site.Graph, r.site.Cluster
	switch {
	case r.lines != nil:
	case r.dryRun:
		console.PrintDryRun(r.out, r.dry.Plans(g, c), c)
		fmt.Fprintf(r.out, "%s: %s would run on %s, %d are done already, %s passed; nothing was changed\n",
			g.Name, console.Count(t.Would, "step"), console.Count(r.dry.Hosts(), "host"), t.Done, console.Count(t.Checked, "check"))
	default:
		fmt.Fprintf(r.out, "%s of cluster %s: done in %s; %s\n", g.Name, c.Metadata.Name, console.Brief(took), console.TallyText(t))
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
