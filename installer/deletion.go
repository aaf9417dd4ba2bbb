package installer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// Deletion is the deletion of a cluster, as described by the cluster record and by the hosts
// that an earlier deletion skipped.
type Deletion struct {
	*state.Deletion
	session *Session
}

// ReachDeletion opens a session for the deletion of o.Cluster without the hosts in skip. The
// cluster record decides what is deleted, even if o.Cluster differs by now; o.Cluster only
// specifies how hosts are reached. Hosts that do not answer are returned as by Reach,
// including those of the record.
func ReachDeletion(ctx context.Context, o Options, skip []string) (*Session, *Deletion, HostErrors, error) {
	config := o.Cluster
	w, err := NewWorkdir(o.Base, config.Metadata.Name)
	if err != nil {
		return nil, nil, nil, err
	}
	left, err := state.ReadLeft(w.Dir)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("list of hosts that a deletion has skipped: %w", err)
	}
	r, err := state.Here(w.Dir)
	if err != nil {
		return nil, nil, nil, err
	}
	d, err := state.NewDeletion(config, r, left, skip)
	if unknown := (*state.UnknownHostError)(nil); errors.As(err, &unknown) && r == nil {
		d, err = state.NewDeletion(config, nil, left, known(d, skip)) // the cluster record may list the host
	}
	if err != nil {
		return nil, nil, nil, err
	}
	o.Cluster = d.Cluster()
	s, failed, err := Reach(ctx, o)
	if err != nil {
		return nil, nil, nil, err
	}
	if r, err = state.Exists(ctx, s.Cluster, w.Dir, s.Host); err == nil {
		d, err = state.NewDeletion(config, r, left, skip)
	}
	if err != nil {
		return nil, nil, nil, errors.Join(err, s.Close())
	}
	further, err := s.widen(ctx, d.Cluster())
	if err != nil {
		return nil, nil, nil, errors.Join(err, s.Close())
	}
	return s, &Deletion{d, s}, append(failed, further...), nil
}

// known returns the names in skip that the deletion lists.
func known(d *state.Deletion, skip []string) []string {
	var out []string
	for _, name := range skip {
		if _, ok := d.Whole.Host(name); ok {
			out = append(out, name)
		}
	}
	return out
}

// widen makes c the session's cluster, and connects to those of its hosts that were not tried
// yet.
func (s *Session) widen(ctx context.Context, c *manifest.Cluster) (HostErrors, error) {
	var fresh []string
	for _, h := range c.Spec.Hosts {
		if _, tried := s.Cluster.Host(h.Name); !tried {
			fresh = append(fresh, h.Name)
		}
	}
	var failed HostErrors
	if len(fresh) > 0 {
		s.Cluster = c.Only(fresh)
		var err error
		if failed, err = s.reachAll(ctx); err != nil {
			return nil, err
		}
	}
	s.Cluster = c
	for name, host := range s.hosts {
		host.Cluster = c
		host.Host, _ = c.Host(name)
	}
	return failed, nil
}

// Begin records the skipped hosts: if the deletion is interrupted, the next one must find
// them.
func (d *Deletion) Begin() error { return d.Deletion.Begin(d.session.Workdir.Dir, time.Now()) }

// End records that the deletion succeeded.
func (d *Deletion) End() error { return d.Deletion.End(d.session.Workdir.Dir) }

// Clean removes everything of a deleted cluster from the hosts that its deletion skipped, if
// this session reaches them, and returns their names.
func (s *Session) Clean(ctx context.Context, o RunOptions) (cleaned []string, err error) {
	all, err := state.Cleanings(s.Workdir.Dir, s.Cluster)
	if err != nil {
		return nil, err
	}
	for _, x := range all {
		c := x.Cluster
		if slices.ContainsFunc(c.Spec.Hosts, func(h manifest.Host) bool { return s.Host(h) == nil }) { // still unreachable: it is cleaned later
			continue
		}
		for _, h := range c.Spec.Hosts {
			if err := s.cleanHost(ctx, x, h, o); err != nil {
				return cleaned, err
			}
			cleaned = append(cleaned, h.Name)
		}
		if err := state.Cleaned(s.Workdir.Dir, c); err != nil {
			return cleaned, err
		}
	}
	return cleaned, nil
}

// CleaningPlan returns the plan that cleans a host.
func CleaningPlan(x state.Cleaning) (*plan.Graph, error) {
	if !x.Node {
		return plan.Build(pipeline.Reset(), plan.Scope{Want: x.Cluster, Set: x.Cluster.Spec.Kubernetes.Version})
	}
	none := &manifest.Cluster{Metadata: x.Cluster.Metadata}
	return plan.Build(pipeline.CleanNodes(), plan.Scope{Want: none, Before: x.Cluster, Set: x.Cluster.Spec.Kubernetes.Version})
}

// cleanHost cleans one host, and reads the host's facts again.
func (s *Session) cleanHost(ctx context.Context, x state.Cleaning, h manifest.Host, o RunOptions) error {
	c := x.Cluster
	g, err := CleaningPlan(x)
	if err != nil {
		return err
	}
	old := *s.Host(h)
	old.Host, old.Cluster = h, c
	options := s.Options
	options.Cluster, options.Bundle = c, nil
	one := &Session{Options: options, Workdir: s.Workdir, audit: s.audit, redactor: s.redactor, hosts: map[string]*steps.Host{h.Name: &old}, home: s.home, part: true}
	o.Resume = false
	if _, err := one.Run(ctx, g, o); err != nil {
		return fmt.Errorf("clean host %s, which a deletion has skipped: %w", h.Name, err)
	}
	facts, err := s.Host(h).Runner.Facts(ctx)
	if err != nil {
		return &HostError{Host: h.Name, Address: h.Address, Err: err}
	}
	s.Host(h).Facts = facts
	return nil
}
