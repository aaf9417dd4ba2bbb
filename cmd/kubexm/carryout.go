package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubernetes"
)

// carryOut runs the plan of s and shows what happens, one line an event.
func (a *app) carryOut(ctx context.Context, f *siteFlags, s *site, session *installer.Session) error {
	a.orderly.Store(true)
	defer a.orderly.Store(false)
	total := 0
	for _, n := range s.graph.Nodes {
		total += len(n.Hosts)
	}
	r := &runReport{app: a, total: total, begin: time.Now(), dryRun: f.dryRun}
	journal, err := session.Run(ctx, s.graph, installer.RunOptions{DryRun: f.dryRun, Parallel: f.parallel, Stop: a.stop, Report: r.event})
	if err != nil {
		return a.runFailed(ctx, s, err, journal)
	}
	took := time.Since(r.begin).Round(time.Second)
	if f.dryRun {
		fmt.Fprintf(a.out, "%s: %d steps would run, %d are done already\n", s.graph.Name, r.would, r.skipped)
		return nil
	}
	fmt.Fprintf(a.out, "%s of cluster %s: done in %s; %d steps ran, %d were done already\n", s.graph.Name, s.cluster.Metadata.Name, took, r.ran, r.skipped)
	if s.graph.Name == "create" {
		fmt.Fprintf(a.out, "  next  KUBECONFIG=%s kubectl get nodes\n", kubernetes.KubeconfigPath(session.Workdir.Dir))
	}
	fmt.Fprintf(a.out, "  log   %s\n", journal)
	return nil
}

// runFailed prints every failure of a run as a block: what, where, what to do,
// and where the whole story is.
func (a *app) runFailed(ctx context.Context, s *site, err error, journal string) error {
	if ctx.Err() != nil {
		return err
	}
	code := exitFailed
	var findings steps.Findings
	if errors.As(err, &findings) {
		code = exitPreflight
	}
	for _, e := range flatten(err) {
		var at *steps.Error
		if !errors.As(e, &at) {
			fmt.Fprintf(a.err, "error: %v\n", e)
			continue
		}
		fmt.Fprintf(a.err, "error: %v\n  step  %s   host  %s\n", at.Err, at.Node, a.hostAt(s, at.Host))
		if errors.As(at.Err, &findings) {
			for _, x := range findings {
				fmt.Fprintf(a.err, "  try   %s\n", x.Advice)
			}
		}
		a.printAdvice(at.Err)
	}
	fmt.Fprintf(a.err, "  log   %s\n", journal)
	return &coded{code: code, error: errSaid}
}

func (a *app) hostAt(s *site, name string) string {
	for _, h := range s.cluster.Spec.Hosts {
		if h.Name == name {
			return fmt.Sprintf("%s (%s)", name, h.Address)
		}
	}
	return name
}

// flatten gives the single errors of a joined one.
func flatten(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok { // the outermost join alone is taken apart
		var out []error
		for _, e := range j.Unwrap() {
			out = append(out, flatten(e)...)
		}
		return out
	}
	return []error{err}
}

// runReport shows events as lines.
type runReport struct {
	*app
	total, ended, ran, skipped, would int
	begin                             time.Time
	dryRun                            bool
}

func (r *runReport) event(e engine.Event) {
	switch e.Outcome {
	case engine.Started:
		return
	case engine.Skipped:
		r.skipped++
		r.ended++
		if !r.verbose {
			return
		}
	case engine.Ran:
		r.ran++
		r.ended++
	case engine.Would:
		r.would++
		r.ended++
	}
	line := fmt.Sprintf("%6s  %3d/%d  %-14s %-10s %s", time.Since(r.begin).Round(100*time.Millisecond), r.ended, r.total, e.Outcome, e.Host, e.Node)
	if e.Took >= 100*time.Millisecond {
		line += fmt.Sprintf("  (%s)", e.Took.Round(100*time.Millisecond))
	}
	if e.Outcome == engine.Retried || (e.Outcome == engine.RolledBack && e.Err != nil) {
		line += ": " + firstLine(e.Error)
	}
	fmt.Fprintln(r.err, line)
	for _, c := range e.Changes {
		fmt.Fprintln(r.out, "    "+e.Host+": "+strings.ReplaceAll(c, "\n", "\n    "))
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
