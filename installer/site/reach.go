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

// Reach opens the session, and returns the hosts that it cannot reach. For a pipeline that
// deletes a cluster, s.Cluster becomes the cluster of the record, without the skipped hosts.
func (s *Site) Reach(ctx context.Context) (unreached installer.HostErrors, err error) {
	o := s.Options
	o.Exclusive = !s.DryRun
	if s.Pipeline.Membership != plan.KeepsHosts {
		return s.reachMembership(ctx, o)
	}
	if !s.Pipeline.Deletes {
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

// notReached classifies why a deletion cannot start.
func notReached(err error) error {
	if no := notSkipped(err, refusal.Usage); no != nil {
		return no
	}
	if other := (*state.OtherClusterError)(nil); errors.As(err, &other) {
		return &refusal.Error{Err: err, Kind: refusal.Hosts, Advice: other.Advice()}
	}
	return err
}

// CheckSkipped checks the skipped hosts against the cluster record, and stores the record.
func (s *Site) CheckSkipped(ctx context.Context) (err error) {
	if len(s.Away) == 0 {
		return nil
	}
	s.Exists, err = s.Session.MayContinueWithout(ctx, s.Away)
	if no := notSkipped(err, refusal.Hosts); no != nil {
		return no
	}
	return err
}

// RecordsBundle reports whether the pipeline applies a bundle to a cluster and records it.
func (s *Site) RecordsBundle() bool { return s.Bundle != nil && s.Pipeline.WritesRecord }

// Existing returns what the pipeline would harm in an existing cluster, or would reject.
func (s *Site) Existing(ctx context.Context) (steps.Findings, error) { return s.Session.Existing(ctx) }

// CheckOperation returns an error while another kind of operation is open.
func (s *Site) CheckOperation(ctx context.Context) error {
	return otherOperation(s.Session.CheckOperation(ctx, s.Pipeline))
}

// otherOperation adds kind and advice to the error of an open operation.
func otherOperation(err error) error {
	if other, ok := errors.AsType[*installer.OperationError](err); ok {
		return &refusal.Error{Err: err, Kind: refusal.Hosts, Advice: other.Advice()}
	}
	return err
}

// Clean cleans the hosts that a deletion skipped, and returns their names: the next steps find
// them in their previous state.
func (s *Site) Clean(ctx context.Context, report func(engine.Event)) ([]string, error) {
	return s.Session.Clean(ctx, installer.RunOptions{Parallel: s.Parallel, Stop: s.Stop, Version: s.Version, Report: report})
}

// Supply provides what is stored elsewhere: the keys of the cluster on its hosts, and the
// layers of a delta in the site's registry.
func (s *Site) Supply(ctx context.Context) error {
	if err := s.Session.Recall(ctx); err != nil {
		return err
	}
	return s.Session.AddRegistrySource(ctx)
}

// Begin records the start of a deletion, of a cluster or of hosts; other pipelines need no record.
func (s *Site) Begin() error {
	switch {
	case s.DryRun:
	case s.Deletion != nil:
		return s.Deletion.Begin()
	case s.Change != nil:
		return s.Change.Begin()
	}
	return nil
}

// End records the successful end of a deletion.
func (s *Site) End() error {
	switch {
	case s.DryRun:
	case s.Deletion != nil:
		return s.Deletion.End()
	case s.Change != nil:
		return s.Change.End()
	}
	return nil
}

// RunOptions returns the run options of the request.
func (s *Site) RunOptions() installer.RunOptions {
	return installer.RunOptions{DryRun: s.DryRun, Flags: s.Flags, Parallel: s.Parallel, Stop: s.Stop, Version: s.Version, Skipped: s.Skipped}
}

// ErrStopped reports that the checks were stopped before their end.
var ErrStopped = errors.New("stopped before all checks were made")

// ChecksRequest returns a request that only checks the hosts of s, on its session.
func (s *Site) ChecksRequest() *Site {
	look := &Site{Request: s.Request, Session: s.Session, Skipped: s.Skipped, skip: s.skip}
	look.Pipeline, look.DryRun, look.Away, look.Batch, look.Drain, look.Targets, look.Flags = pipeline.Preflight(), true, nil, plan.Batch{}, plan.Drain{}, nil, nil
	return look
}

// RunChecks runs the checks on the reached hosts. It returns their findings, together with those
// about unreachable hosts and an existing cluster. planned is called with the plan before it
// runs, report with each event but findings. failed are errors of the checks themselves.
func (s *Site) RunChecks(ctx context.Context, unreached installer.HostErrors, planned func(*plan.Graph), report func(engine.Event)) (found []steps.Finding, journal string, failed []error, err error) {
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
