package installer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/plan"
)

// RunOptions say how a plan is carried out.
type RunOptions struct {
	DryRun   bool
	Parallel int
	Stop     <-chan struct{}
	Report   func(engine.Event)
}

// Run carries out g and keeps a journal of it, whose path it gives.
func (s *Session) Run(ctx context.Context, g *plan.Graph, o RunOptions) (journal string, err error) {
	if !o.DryRun {
		claimed, release, err := s.claim(ctx)
		if err != nil {
			return "", err
		}
		defer release()
		ctx = claimed
	}
	f, err := s.newJournal(time.Now())
	if err != nil {
		return "", fmt.Errorf("journal: %w", err)
	}
	journal = f.Name()
	enc := json.NewEncoder(f)
	var written error
	e := &engine.Engine{
		Host: s.Host, Commands: max(o.Parallel, 1), Uploads: max(o.Parallel/2, 1), Timeout: 10 * time.Minute, DryRun: o.DryRun, Stop: o.Stop,
		Report: func(ev engine.Event) {
			if err := enc.Encode(ev); written == nil && err != nil { // the first says enough
				written = fmt.Errorf("journal: %w", err)
			}
			if o.Report != nil {
				o.Report(ev)
			}
		},
	}
	err = e.Run(ctx, g)
	if busy := (*BusyError)(nil); errors.As(context.Cause(ctx), &busy) {
		err = errors.Join(busy, err)
	}
	return journal, errors.Join(err, written, f.Close())
}

// newJournal opens a file of its own for a run, also for one that begins in the
// second in which another did.
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
