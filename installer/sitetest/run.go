package sitetest

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/audit"
	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Pipe returns a pipeline.
type Pipe = func() plan.Pipeline

// Graph returns a pipeline's plan for the site; change may change its nodes.
func (s *Site) Graph(p Pipe, change func(*plan.Node)) *plan.Graph {
	s.T.Helper()
	return s.graphOf(s.Cluster, p, change)
}

func (s *Site) graphOf(c *manifest.Cluster, p Pipe, change func(*plan.Node)) *plan.Graph {
	s.T.Helper()
	g, err := plan.Build(p(), plan.Scope{Want: c, Set: c.Spec.Kubernetes.Version, Away: s.Skip, Batch: s.Batch, Drain: s.Drain, Targets: s.Targets, Flags: s.Flags})
	if err != nil {
		s.T.Fatal(err)
	}
	for _, n := range g.Nodes {
		if change != nil {
			change(n)
		}
	}
	return g
}

// hosts are the hosts of a run.
type hosts map[string]*steps.Host

func (h hosts) of(x manifest.Host) *steps.Host { return h[x.Name] }

// Reached connects to some hosts of the site, or to all.
func (s *Site) Reached(names ...string) state.Of {
	s.T.Helper()
	c := s.Cluster
	if len(names) > 0 {
		c = c.Only(names)
	}
	all, err := s.reach(c)
	if err != nil {
		s.T.Fatal(err)
	}
	return all.of
}

// reach connects to every host of a cluster and reads its facts, except for those in lost.
func (s *Site) reach(c *manifest.Cluster, lost ...string) (hosts, error) {
	out := hosts{}
	config := sync.OnceValues(s.Cluster.Public) // all hosts of a run record the same
	applied := func() steps.Applied { return s.applied(config) }
	red := connector.NewRedactor(append([]string{"secret"}, s.Secrets...)...)
	for _, h := range c.Spec.Hosts {
		if slices.Contains(s.Skip, h.Name) || slices.Contains(lost, h.Name) {
			continue
		}
		log := cmp.Or(s.Debug, slog.New(slog.DiscardHandler))
		var conn connector.Conn = &wire{Sim: s.Sims[h.Name], site: s, host: h.Name}
		if s.Log != nil {
			conn = audit.Wrap(conn, h.Name, s.Log, red)
		}
		r := runner.New(conn, runner.Options{Redactor: red, Log: log})
		facts, err := r.Facts(s.T.Context())
		if err != nil {
			return nil, err
		}
		out[h.Name] = &steps.Host{Host: h, Runner: r, Platform: plan.PlatformOf(h), Cluster: c, Facts: facts,
			Workdir: s.Workdir, Log: log, Artifacts: s.Bundle, Direct: s.ExternalRegistry.direct, Applied: applied, Away: s.Skip}
	}
	return out, nil
}

// Run executes a pipeline as a new run of kubexm: it reads the facts of every host again, and
// knows nothing of previous runs.
func (s *Site) Run(p Pipe, change func(*plan.Node)) error {
	s.T.Helper()
	s.Events = nil
	switch which := p(); {
	case which.WritesRecord:
		return s.create(p, change)
	case which.Deletes:
		return s.remove(p, change)
	}
	all, err := s.reach(s.Cluster)
	if err != nil {
		return err
	}
	if p().Operates() {
		return s.operate(all, s.Cluster, s.Graph(p, change))
	}
	return s.walk(all, s.Graph(p, change), nil)
}

func (s *Site) create(p Pipe, change func(*plan.Node)) error {
	s.T.Helper()
	all, err := s.reach(s.Cluster)
	if err != nil {
		return err
	}
	r, err := state.Exists(s.T.Context(), s.Cluster, s.Workdir, all.of)
	if err != nil {
		return err
	}
	if err := state.CheckAway(s.Cluster, r, s.Skip); err != nil {
		return err
	}
	found, err := installer.Existing(s.T.Context(), s.Cluster, s.Workdir, &state.Bundle{Components: s.components()}, all.of)
	if err != nil || len(found) > 0 {
		return errors.Join(err, found.OrNil())
	}
	if _, _, err := installer.Adopt(s.T.Context(), s.Cluster, s.Workdir, all.of); err != nil {
		return err
	}
	if err := s.clean(all); err != nil {
		return err
	}
	if all, err = s.reach(s.Cluster); err != nil { // some hosts may have changed
		return err
	}
	if err := installer.Recall(s.T.Context(), s.Cluster, all.of); err != nil {
		return err
	}
	return s.operate(all, s.Cluster, s.Graph(p, change))
}

// clean cleans the hosts that a deletion skipped, if they are reachable now.
func (s *Site) clean(all hosts) error {
	s.T.Helper()
	return s.cleanFor(s.Cluster, all)
}

// cleanFor is clean for the hosts of a cluster.
func (s *Site) cleanFor(c *manifest.Cluster, all hosts) error {
	s.T.Helper()
	cleanings, err := state.Cleanings(s.Workdir, c)
	if err != nil {
		return err
	}
	for _, x := range cleanings {
		c := x.Cluster
		old := hosts{}
		if slices.ContainsFunc(c.Spec.Hosts, func(h manifest.Host) bool { return all[h.Name] == nil }) {
			continue
		}
		for _, h := range c.Spec.Hosts {
			facade := *all[h.Name]
			facade.Host, facade.Cluster = h, c
			old[h.Name] = &facade
		}
		g, err := installer.CleaningPlan(x)
		if err != nil {
			return err
		}
		if err := s.walk(old, g, nil); err != nil {
			return err
		}
		if err := state.Cleaned(s.Workdir, c); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes what was applied, even if the config differs by now.
func (s *Site) remove(p Pipe, change func(*plan.Node)) error {
	s.T.Helper()
	left, err := state.ReadLeft(s.Workdir)
	if err != nil {
		return err
	}
	r, err := state.Here(s.Workdir)
	if err != nil {
		return err
	}
	d, err := state.NewDeletion(s.Cluster, r, left, s.Skip)
	if err != nil {
		return err
	}
	all, err := s.reach(d.Cluster())
	if err != nil {
		return err
	}
	if r, err = state.Exists(s.T.Context(), d.Cluster(), s.Workdir, all.of); err != nil {
		return err
	}
	if d, err = state.NewDeletion(s.Cluster, r, left, s.Skip); err != nil {
		return err
	}
	if all, err = s.reach(d.Cluster()); err != nil {
		return err
	}
	if err := d.Begin(s.Workdir, time.Now()); err != nil {
		return err
	}
	if err := s.operate(all, d.Cluster(), s.graphOf(d.Cluster(), p, change)); err != nil {
		return err
	}
	return d.End(s.Workdir)
}

// operate is walk as an operation on a cluster.
func (s *Site) operate(all hosts, c *manifest.Cluster, g *plan.Graph) error {
	o, err := installer.NewOperation(s.T.Context(), g, c, s.Workdir, "tester@site", all.of)
	if err != nil {
		return err
	}
	s.operation = o.ID()
	err = s.walk(all, g, o.Begin)
	return errors.Join(err, o.End(s.T.Context(), err, ""))
}

func (s *Site) walk(all hosts, g *plan.Graph, begin func(context.Context) error) error {
	atOnce := cmp.Or(s.Parallel, 8)
	var passed map[string]bool
	if s.Passed != nil {
		passed = engine.Resumable(g, s.Passed)
	}
	events := 0
	for _, n := range g.Nodes {
		events += 2 * len(n.Hosts) // most have two: they start and end
	}
	s.Events = slices.Grow(s.Events, events)
	e := &engine.Engine{Commands: atOnce, Passed: passed, Uploads: max(1, atOnce/2), Host: all.of, Lead: installer.NewLeadSelector(g.Leads, all.of).Lead, Begin: begin, Rollback: s.Rollback,
		Report: func(e engine.Event) {
			if e.Finding != nil {
				s.Warnings = append(s.Warnings, e.Finding.What)
				return
			}
			s.Events = append(s.Events, e)
		}}
	return e.Run(s.T.Context(), g)
}
