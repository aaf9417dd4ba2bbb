package installer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
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
	journal = s.Workdir.Run(time.Now())
	f, err := os.OpenFile(journal, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return "", fmt.Errorf("journal: %w", err)
	}
	enc := json.NewEncoder(f)
	var written error
	e := &engine.Engine{
		Host: s.Host, Commands: max(o.Parallel, 1), Uploads: max(o.Parallel/2, 1), Timeout: 10 * time.Minute, DryRun: o.DryRun, Stop: o.Stop,
		Report: func(ev engine.Event) {
			written = errors.Join(written, enc.Encode(ev))
			if o.Report != nil {
				o.Report(ev)
			}
		},
	}
	err = e.Run(ctx, g)
	return journal, errors.Join(err, written, f.Close())
}
