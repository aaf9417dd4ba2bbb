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

// runPlan runs a plan on hosts and returns the path of its journal, like
// installer.Session.Run.
type runPlan func(context.Context, *plan.Graph, installer.RunOptions) (journal string, err error)

// execPlan runs the plan of s and reports its progress.
func (a *app) execPlan(ctx context.Context, f *siteFlags, s *siteRun, run runPlan) error {
	r := a.newRunReport(s)
	end := r.begin()
	a.orderly.Store(true)
	o := s.RunOptions()
	o.Report, o.Resume, o.Resumed, o.Rollback = r.event, f.resume, r.resumed, engine.Rollback(f.rollback)
	journal, err := run(ctx, s.Graph, o)
	a.orderly.Store(false)
	end()
	s.journal = journal
	s.tally, s.took = r.view.Counts(), r.view.Elapsed()
	switch {
	case err == nil:
		r.done(journal, s.took)
		return nil
	case ctx.Err() != nil:
		r.interrupted("interrupted", journal)
		return &refusal.Error{Kind: refusal.Interrupted, Err: errReported}
	case errors.Is(err, engine.ErrStopped):
		r.interrupted("stopped", journal)
		return &refusal.Error{Kind: refusal.Interrupted, Err: errReported}
	}
	return r.failed(err, journal)
}

// runReport reports the progress and the result of a run, as text or as lines of JSON.
type runReport struct {
	*app
	site   *siteRun
	view   *console.RunView
	dry    report.DryRun
	dryRun bool
	live   bool // a live view on a terminal; else lines
	width  int  // of the host column
	checks map[string]bool
	events *console.Lines // of --progress json

	mu       sync.Mutex
	warnings []steps.Finding // not printed yet
	last     time.Time       // of the last printed line
}

func (a *app) newRunReport(s *siteRun) *runReport {
	r := &runReport{app: a, site: s, dryRun: s.DryRun, live: a.live(), checks: map[string]bool{}, last: time.Now()}
	total := 0
	for _, n := range s.Graph.Nodes {
		m := n.Step.Meta()
		r.checks[n.ID] = m.ReadOnly && m.Always
		total += len(n.Hosts)
		for _, h := range n.Hosts {
			r.width = min(max(r.width, len(h.Name)), 24)
		}
	}
	r.view = console.NewRunView(s.Graph.Name+" "+s.Cluster.Metadata.Name, total, func() int { return int(a.pressed.Load()) })
	return r
}

// begin starts to show the run. The caller must call the returned function to stop.
func (r *runReport) begin() (end func()) {
	if r.lines != nil || r.display.Progress == console.None {
		return func() {}
	}
	if r.display.Progress == console.JSON {
		r.events = console.NewLines(r.err, console.JSON)
		return func() {}
	}
	fmt.Fprintf(r.screen, "%s: %s on %s\n", r.view.Title(), console.FormatCount(r.view.Counts().Total, "step"), console.FormatCount(len(r.site.Cluster.Spec.Hosts), "host"))
	if s := r.site.Skipped; len(s) > 0 {
		fmt.Fprintf(r.screen, "checks skipped: %s\n", shortNames(s))
	}
	if r.live {
		return r.screen.Show(r.view.Frame)
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		r.printStillRunning(over)
	}()
	return func() {
		close(over)
		<-ended
	}
}

// quietFor is how long a run without a terminal prints nothing before it reports which
// step still runs.
const quietFor = 30 * time.Second

// printStillRunning reports the longest running step each time no line was printed for
// quietFor, until over is closed.
func (r *runReport) printStillRunning(over <-chan struct{}) {
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
			r.printLine(fmt.Sprintf("running    %-*s  %s (%s)%s", r.width, host, step, console.FormatDuration(since), more))
		}
	}
}

// printLine prints one line of the run, with the elapsed time and the number of steps
// that have ended.
func (r *runReport) printLine(line string) {
	t := r.view.Counts()
	fmt.Fprintf(r.screen, "%6s  %*d/%d  %s\n", console.FormatDuration(r.view.Elapsed()), len(fmt.Sprint(t.Total)), t.Ended(), t.Total, line)
	r.mu.Lock()
	r.last = time.Now()
	r.mu.Unlock()
}

// event handles one event of the engine.
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
	case engine.Skipped, engine.Resumed, engine.Checked, engine.RollingBack, engine.WouldRun: // a dry run prints its plan at the end
		if !r.verbose {
			return
		}
	}
	if found, _ := steps.Split(e.Err); len(found) > 0 && !r.verbose { // findings are printed as one table
		return
	}
	line := fmt.Sprintf("%-12s  %-*s  %s", e.Outcome, r.width, e.Host, e.Node)
	if e.Duration >= 100*time.Millisecond {
		line += "  (" + console.FormatDuration(e.Duration) + ")"
	}
	if e.Reason != "" {
		line += ": " + firstLine(e.Reason)
	}
	if e.Error != "" && e.Outcome != engine.Failed { // failures are printed at the end
		line += ": " + firstLine(e.Error)
	}
	r.printLine(line)
}

// warn records a finding that does not stop the run.
func (r *runReport) warn(x steps.Finding) {
	if r.lines != nil {
		r.lines.Finding(x)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warnings = append(r.warnings, x)
}

// flush prints the recorded warnings: before the first change, or at the end.
func (r *runReport) flush() {
	r.mu.Lock()
	ws := r.warnings
	r.warnings = nil
	r.mu.Unlock()
	if len(ws) > 0 {
		console.PrintFindings(r.screen, ws, r.site.Cluster, r.tableWidth(r.err))
	}
}

// failed prints every failure as a block with step, host, advice and the path of the
// journal. It returns the error that sets the exit code.
func (r *runReport) failed(err error, journal string) error {
	c, kind, next := r.site.Cluster, refusal.Failed, "run the same command again to continue"
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
		next = "fix the findings, then run the same command again"
		if t := r.view.Counts(); t.Ran == 0 && len(fs) == 0 {
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
	if journal != "" { // a run that never started has none
		fmt.Fprintf(r.screen, "  log   %s\n", journal)
	}
	fmt.Fprintf(r.screen, "next: %s\n", next)
	return &refusal.Error{Kind: kind, Err: errReported}
}

// interrupted reports a run that was stopped or interrupted by a signal.
func (r *runReport) interrupted(how, journal string) {
	r.flush()
	t := r.view.Counts()
	fmt.Fprintf(r.screen, "%s: %s after %s: %d of %s done\n  log   %s\nnext: run the same command again to continue\n",
		r.view.Title(), how, console.FormatDuration(r.view.Elapsed()), t.Ended()-t.Failed, console.FormatCount(t.Total, "step"), journal)
}

// done reports a successful run.
func (r *runReport) done(journal string, took time.Duration) {
	r.flush()
	t, g, c := r.view.Counts(), r.site.Graph, r.site.Cluster
	switch {
	case r.lines != nil:
	case r.dryRun:
		console.PrintDryRun(r.out, r.dry.Plans(g, c), c)
		fmt.Fprintf(r.out, "%s: %s would run on %s, %d already done, %s passed; nothing was changed\n",
			g.Name, console.FormatCount(t.WouldRun, "step"), console.FormatCount(r.dry.Hosts(), "host"), t.Done, console.FormatCount(t.Checked, "check"))
	default:
		fmt.Fprintf(r.out, "%s of cluster %s: done in %s; %s\n", g.Name, c.Metadata.Name, console.FormatDuration(took), console.TallyText(t))
		if g.WritesRecord {
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
