package sitetest

import (
	"errors"
	"slices"
	"time"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// Membership is what a user names in a command that changes the hosts of a cluster.
type Membership struct {
	Names     []string
	Dead      bool
	AllowEven bool
	Drain     plan.Drain
}

// Change executes a pipeline that changes the hosts of the cluster, as a new run of kubexm.
func (s *Site) Change(p Pipe, m Membership) error {
	s.T.Helper()
	s.Events = nil
	s.Kube.Change(func(k *steptest.Kube) { k.Outlives = true })
	defer s.Kube.Change(func(k *steptest.Kube) { k.Outlives = false })
	c := s.Cluster
	here, err := state.Here(s.Workdir)
	if err != nil {
		return err
	}
	if here != nil {
		c = c.Applied(here.Config)
	}
	var lost []string
	if m.Dead {
		lost = m.Names
	}
	lost = append(lost, s.Lost...)
	all, err := s.reach(c, lost...)
	if err != nil {
		return err
	}
	e, applied, err := state.Recorded(s.T.Context(), c, s.Workdir, all.of)
	if err != nil {
		return err
	}
	if e == nil {
		return installer.ErrNoRecord
	}
	if p().Membership == plan.RemovesHosts {
		return s.leave(p, m, e, here, applied, lost)
	}
	return s.join(p, m, e, lost)
}

func (s *Site) join(p Pipe, m Membership, e *manifest.Existing, lost []string) error {
	s.T.Helper()
	change, err := state.NewJoining(s.Cluster, e, m.Names, m.AllowEven)
	if err != nil || len(change.Targets) == 0 {
		return err
	}
	all, err := s.reach(change.After, lost...)
	if err != nil {
		return err
	}
	found, err := installer.Existing(s.T.Context(), change.After, s.Workdir, &state.Bundle{Components: s.components()}, all.of)
	if err != nil || len(found) > 0 {
		return errors.Join(err, found.OrNil())
	}
	if _, _, err := installer.Adopt(s.T.Context(), change.After, s.Workdir, all.of); err != nil {
		return err
	}
	if err := s.cleanFor(change.After, all); err != nil {
		return err
	}
	if all, err = s.reach(change.After, lost...); err != nil { // some hosts may have changed
		return err
	}
	for _, h := range all {
		h.Applied = func() steps.Applied { return s.appliedTo(change.After) }
	}
	if err := installer.Recall(s.T.Context(), change.After, all.of); err != nil {
		return err
	}
	return s.walkChange(p, all, plan.Scope{Want: change.After, Exists: e, Targets: change.Targets, Drain: m.Drain}, nil)
}

func (s *Site) leave(p Pipe, m Membership, e, here *manifest.Existing, applied steps.Applied, lost []string) error {
	s.T.Helper()
	change, err := state.NewLeaving(s.Cluster, e, here, m.Names)
	if err != nil {
		return err
	}
	all, err := s.reach(change.Before, lost...)
	if err != nil {
		return err
	}
	if _, _, err := installer.Adopt(s.T.Context(), change.Before, s.Workdir, all.of); err != nil {
		return err
	}
	var dead []string
	if m.Dead {
		dead = m.Names
	}
	for name, h := range all {
		if _, stays := change.After.Host(name); stays {
			h.Cluster = change.After
		}
		h.Away = slices.Concat(s.Skip, dead)
		h.Applied = func() steps.Applied {
			out := s.appliedTo(change.After)
			out.Set, out.Components = applied.Set, applied.Components
			return out
		}
	}
	if len(dead) == 0 {
		return s.walkChange(p, all, plan.Scope{Want: change.After, Before: change.Before, Exists: e, Drain: m.Drain}, nil)
	}
	if err := state.BeginLeaving(s.Workdir, change.Before, dead, time.Now()); err != nil {
		return err
	}
	if err := s.walkChange(p, all, plan.Scope{Want: change.After, Before: change.Before, Exists: e, Drain: m.Drain}, dead); err != nil {
		return err
	}
	return state.EndLeaving(s.Workdir, dead)
}

func (s *Site) walkChange(p Pipe, all hosts, scope plan.Scope, dead []string) error {
	scope.Set, scope.Away = scope.Want.Spec.Kubernetes.Version, slices.Concat(s.Skip, dead)
	g, err := plan.Build(p(), scope)
	if err != nil {
		return err
	}
	return s.operate(all, scope.Want, g)
}

// appliedTo is applied for another cluster than the site's config.
func (s *Site) appliedTo(c *manifest.Cluster) steps.Applied {
	return s.applied(c.Public)
}
