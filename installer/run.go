package installer

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest/durable"
)

// RunOptions configure how a plan is executed.
type RunOptions struct {
	DryRun   bool
	Parallel int
	Stop     <-chan struct{}
	Report   func(engine.Event)
	// Version is the version of kubexm.
	Version string
	// Skipped are the checks that the user skipped.
	Skipped []string
	// Flags are the pipeline's flags that the user gave.
	Flags []string
	// Rollback selects what is undone on a host when a step fails.
	Rollback engine.Rollback
	// Resume skips what the last run saw done, without checking it; Resumed is called with the
	// result before anything happens.
	Resume  bool
	Resumed func(Resumption)
}

// Run executes g and writes a journal, whose path it returns. The first line is a Head. The
// others are events: that a step starts, before it does, and how it ended, after that was
// verified on the host. The last line is the head of the audit log.
func (s *Session) Run(ctx context.Context, g *plan.Graph, o RunOptions) (journal string, err error) {
	return s.logged(ctx, g, o, func() (string, error) { return s.run(ctx, g, o) })
}

func (s *Session) run(ctx context.Context, g *plan.Graph, o RunOptions) (journal string, err error) {
	if !o.DryRun {
		claimed, release, err := s.claim(ctx, g)
		if err != nil {
			return "", err
		}
		defer release()
		ctx = claimed
	}
	s.sets = g.Sets(s.Set())
	is, err := s.operationOf(ctx, g, o)
	if err != nil {
		return "", err
	}
	head, err := s.head(g, o, rand.Text())
	if err != nil {
		return "", err
	}
	var passed map[string]string
	if o.Resume {
		var r Resumption
		passed, r = s.resumption(ctx, g, head)
		if o.Resumed != nil {
			o.Resumed(r)
		}
	}
	f, err := s.newJournal(time.Now())
	if err != nil {
		return "", fmt.Errorf("journal: %w", err)
	}
	journal = f.Name()
	if err := begin(f, head, g, passed); err != nil {
		return journal, errors.Join(fmt.Errorf("journal: %w", err), f.Close())
	}
	if !o.DryRun {
		if err := s.mark(ctx, g, head.Run); err != nil {
			return journal, errors.Join(err, f.Close())
		}
	}
	err = s.walk(ctx, g, o, passed, f, is)
	if is != nil {
		err = errors.Join(err, is.End(ctx, err, journalName(journal)))
	}
	if err == nil && !o.DryRun && !g.WritesRecord {
		err = s.unmark(ctx, g)
	}
	return journal, errors.Join(err, f.Close())
}

// walk has the engine execute g, and writes its events to the journal.
func (s *Session) walk(ctx context.Context, g *plan.Graph, o RunOptions, passed map[string]string, journal io.Writer, is *Operation) error {
	enc := json.NewEncoder(journal)
	var written error
	keys := map[string]bool{}
	for key := range passed {
		keys[key] = true
	}
	e := &engine.Engine{
		Host: s.Host, Lead: NewLeadSelector(g.Leads, s.Host).Lead, Commands: max(o.Parallel, 1), Uploads: max(o.Parallel/2, 1), Timeout: 10 * time.Minute, DryRun: o.DryRun, Stop: o.Stop,
		Passed: keys, Rollback: o.Rollback,
		Report: func(ev engine.Event) {
			if err := enc.Encode(ev); written == nil && err != nil { // the first error is enough
				written = fmt.Errorf("journal: %w", err)
			}
			if o.Report != nil {
				o.Report(ev)
			}
		},
	}
	if is != nil {
		e.Begin = is.Begin
	}
	err := e.Run(ctx, g)
	if busy := (*BusyError)(nil); errors.As(context.Cause(ctx), &busy) {
		err = errors.Join(busy, err)
	}
	return errors.Join(err, written)
}

// begin writes the head and the resumed steps, so that the next run needs only this journal.
// They are synced to disk before a host is changed, so that no journal older than a deletion
// is ever the last one.
func begin(f *os.File, head Head, g *plan.Graph, passed map[string]string) error {
	w := bufio.NewWriter(f)
	enc := json.NewEncoder(w)
	if err := enc.Encode(headLine{Head: &head}); err != nil {
		return err
	}
	for _, n := range g.Nodes {
		for _, h := range n.Hosts {
			on, ok := passed[engine.Key(n.ID, h.Name)]
			if !ok {
				continue
			}
			e := engine.Event{Time: time.Now(), Module: n.Module, Task: n.Task, Node: n.ID, Step: n.Step.Meta().Name, Host: on, Outcome: engine.Resumed}
			if on != h.Name {
				e.PlanHost = h.Name
			}
			if err := enc.Encode(e); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(w.Flush(), f.Sync()); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(f.Name()))
}

// newJournal creates a separate file for each run, even for two that start in the same second.
func (s *Session) newJournal(t time.Time) (*os.File, error) {
	path := s.Workdir.Run(t)
	for n := 2; ; n++ {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
		path = fmt.Sprintf("%s-%d.jsonl", strings.TrimSuffix(s.Workdir.Run(t), ".jsonl"), n)
	}
}
