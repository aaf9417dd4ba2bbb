package site

import (
	"context"
	"errors"
	"slices"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/steps"
)

// Reach opens the session, and gives the hosts that it cannot reach. Of a pipeline that
// takes a cluster away the cluster is from then on what was applied, without the hosts
// that are passed over.
func (s *Site) Reach(ctx context.Context) (unreached installer.HostErrors, err error) {
	o := s.Options
	o.Alone = !s.DryRun
	if !s.Pipeline.Away {
		s.Session, unreached, err = installer.Reach(ctx, o)
		return unreached, err
	}
	s.Session, s.Deletion, unreached, err = installer.ReachDeletion(ctx, o, s.SkipHosts)
	if err != nil {
		return nil, notReached(err)
	}
	s.Cluster = s.Session.Cluster
	s.Graph, err = plan.Build(s.Pipeline, s.Scope())
	return unreached, err
}

// notReached is why a cluster that is to be taken away cannot be looked at.
func notReached(err error) error {
	if no := notSkipped(err, refusal.Usage); no != nil {
		return no
	}
	if other := (*state.OtherClusterError)(nil); errors.As(err, &other) {
		return &refusal.Error{Err: err, Kind: refusal.Hosts, Advice: other.Advice()}
	}
	return err
}

// PassOver holds the hosts that are away against the record of the cluster, and keeps
// what was applied to it.
func (s *Site) PassOver(ctx context.Context) (err error) {
	if len(s.Away) == 0 {
		return nil
	}
	s.Exists, err = s.Session.GoesWithout(ctx, s.Away)
	if no := notSkipped(err, refusal.Hosts); no != nil {
		return no
	}
	return err
}

// Keeps tells whether the pipeline brings a bundle to a cluster and records that.
func (s *Site) Keeps() bool { return s.Bundle != nil && s.Pipeline.Keeps }

// Existing gives what the pipeline would harm in a cluster that exists, or would say of it
// and not do.
func (s *Site) Existing(ctx context.Context) (steps.Findings, error) { return s.Session.Existing(ctx) }

// CheckOperation refuses to begin while another kind of operation is open.
func (s *Site) CheckOperation(ctx context.Context) error {
	return otherOperation(s.Session.CheckOperation(ctx, s.Pipeline))
}

// otherOperation gives an error that another operation is open its kind.
func otherOperation(err error) error {
	if other, ok := errors.AsType[*installer.OperationError](err); ok {
		return &refusal.Error{Err: err, Kind: refusal.Hosts, Advice: other.Advice()}
	}
	return err
}

// Clean cleans the hosts that a deletion has left, and gives their names: what comes next
// meets them as they were before.
func (s *Site) Clean(ctx context.Context, report func(engine.Event)) ([]string, error) {
	return s.Session.Clean(ctx, installer.RunOptions{Parallel: s.Parallel, Stop: s.Stop, Version: s.Version, Report: report})
}

// Supply brings what lies elsewhere: the keys of the cluster that its hosts keep, and the
// layers of a delta that the site's registry has.
func (s *Site) Supply(ctx context.Context) error {
	if err := s.Session.Recall(ctx); err != nil {
		return err
	}
	return s.Session.Supply(ctx)
}

// Begin remembers what a pipeline that takes a cluster away is about to do; End, that it
// ended well.
func (s *Site) Begin() error {
	if s.Deletion == nil || s.DryRun {
		return nil
	}
	return s.Deletion.Begin()
}

// End is the other half of Begin.
func (s *Site) End() error {
	if s.Deletion == nil || s.DryRun {
		return nil
	}
	return s.Deletion.End()
}

// RunOptions are those that the request says how a plan is carried out with.
func (s *Site) RunOptions() installer.RunOptions {
	return installer.RunOptions{DryRun: s.DryRun, Parallel: s.Parallel, Stop: s.Stop, Version: s.Version, Skipped: s.Skipped}
}

// ErrStopped says that a look ended before all was looked at.
var ErrStopped = errors.New("stopped before all was looked at")

// Looking is a request that only looks at the hosts of s, on its session.
func (s *Site) Looking() *Site {
	look := &Site{Request: s.Request, Session: s.Session, Skipped: s.Skipped, skip: s.skip}
	look.Pipeline, look.DryRun, look.Away, look.Batch = pipeline.Preflight(), true, nil, plan.Batch{}
	return look
}

// Look makes the checks on the hosts that were reached, and gives all that they found with
// what stands against the others. planned is told the plan before it runs, report each
// event but findings. failed is what looking itself failed with.
func (s *Site) Look(ctx context.Context, unreached installer.HostErrors, planned func(*plan.Graph), report func(engine.Event)) (found []steps.Finding, journal string, failed []error, err error) {
	found = slices.Concat(unreached.Findings(), s.Unchecked)
	existing, err := s.Session.Existing(ctx)
	if err != nil {
		return nil, "", nil, err
	}
	found = append(found, existing...)
	scope := s.Scope()
	if scope.Targets = s.Session.Reached(); len(scope.Targets) == 0 {
		return found, "", nil, nil
	}
	if s.Graph, err = plan.Build(s.Pipeline, scope); err != nil {
		return nil, "", nil, err
	}
	planned(s.Graph)
	o := s.RunOptions()
	o.Report = func(e engine.Event) {
		if e.Finding != nil {
			found = append(found, *e.Finding)
			return
		}
		report(e)
	}
	journal, err = s.Session.Run(ctx, s.Graph, o)
	if ctx.Err() != nil || errors.Is(err, engine.ErrStopped) {
		return nil, journal, nil, ErrStopped
	}
	more, failed := steps.Split(err)
	return append(found, more...), journal, failed, nil
}
