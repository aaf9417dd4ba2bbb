package installer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// MembershipOptions configure a change of the hosts of a cluster.
type MembershipOptions struct {
	Kind      plan.Membership
	Names     []string // hosts that join or leave
	Dead      bool     // the leaving hosts do not answer: they are not connected to
	AllowEven bool     // accept an even number of etcd members
	// MembersOnly accepts only hosts that are etcd members and nothing else.
	MembersOnly bool
}

// Membership is a change of the hosts of a cluster, as described by its record.
type Membership struct {
	state.Membership
	Exists *manifest.Existing // the cluster record
	Dead   []string           // leaving hosts that do not answer

	session *Session
}

// AnsweringError reports that a host answers that should be dead.
type AnsweringError struct{ Host string }

func (e *AnsweringError) Error() string { return "host " + e.Host + " answers, but --dead is given" }

// Advice returns what the user can do; see steps.Advice.
func (*AnsweringError) Advice() string {
	return "delete it without --dead: kubexm then removes the cluster from the host, too"
}

// ReachMembership opens a session for a change of the hosts of o.Cluster's cluster. The record
// decides what the cluster is: of o.Cluster it takes the hosts that join, and how hosts are
// reached. Hosts that do not answer are returned as by Reach, without those that do not matter.
func ReachMembership(ctx context.Context, o Options, want MembershipOptions) (*Session, *Membership, HostErrors, error) {
	config := o.Cluster
	w, err := NewWorkdir(o.Base, config.Metadata.Name)
	if err != nil {
		return nil, nil, nil, err
	}
	here, err := state.Here(w.Dir)
	if err != nil {
		return nil, nil, nil, err
	}
	if here != nil && here.Config.Metadata.Name == config.Metadata.Name {
		o.Cluster = config.Applied(here.Config)
	}
	s, failed, err := Reach(ctx, o)
	if err != nil {
		return nil, nil, nil, err
	}
	m, further, err := s.membership(ctx, config, here, want)
	if err != nil {
		return nil, nil, nil, errors.Join(err, s.Close())
	}
	var of HostErrors
	for _, err := range slices.Concat(failed, further) {
		host, ok := errors.AsType[*HostError](err)
		if ok && (slices.Contains(m.Dead, host.Host) || !m.has(host.Host)) {
			continue
		}
		of = append(of, err)
	}
	return s, m, of, nil
}

// has reports whether a host is part of the cluster before or after the change.
func (m *Membership) has(host string) bool {
	_, before := m.Before.Host(host)
	_, after := m.After.Host(host)
	return before || after
}

// membership reads the cluster record, plans the change, and makes the cluster after it the
// session's cluster. Leaving hosts keep the cluster before it.
func (s *Session) membership(ctx context.Context, config *manifest.Cluster, here *manifest.Existing, want MembershipOptions) (*Membership, HostErrors, error) {
	asked, err := skipLeft(s.Workdir.Dir, s.Host)
	if err != nil {
		return nil, nil, err
	}
	e, applied, err := state.Recorded(ctx, s.Cluster, s.Workdir.Dir, asked)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("cluster record: %w", err)
	case e == nil:
		return nil, nil, steps.Advise(ErrNoRecord, "run `kubexm install` to its end first")
	}
	m := &Membership{Exists: e, session: s}
	var all *manifest.Cluster
	switch {
	case want.Kind == plan.RemovesHosts:
		m.Membership, err = state.NewLeaving(config, e, here, want.Names)
		all = m.Before
	case want.MembersOnly:
		m.Membership, err = state.NewMembers(config, e, want.Names, want.AllowEven)
		all = m.After
	default:
		m.Membership, err = state.NewJoining(config, e, want.Names, want.AllowEven)
		all = m.After
	}
	if err == nil && want.MembersOnly {
		err = state.CheckMembersOnly(all, m.Targets)
	}
	if err != nil {
		return nil, nil, err
	}
	further, err := s.widen(ctx, all)
	if err != nil {
		return nil, nil, err
	}
	if want.Dead {
		for _, name := range m.Targets {
			if s.hosts[name] != nil {
				return nil, nil, &AnsweringError{Host: name}
			}
		}
		m.Dead = m.Targets
	}
	s.Cluster = m.After
	for name, h := range s.hosts {
		switch _, stays := m.After.Host(name); {
		case stays:
			h.Cluster = m.After
		case !m.has(name):
			delete(s.hosts, name)
		}
		h.Away = slices.Concat(s.Away, m.Dead)
	}
	if s.Bundle == nil {
		s.record(applied)
	}
	return m, further, nil
}

// record lets a run without a bundle record what was applied before, with the session's config.
func (s *Session) record(applied steps.Applied) {
	base := applied
	is := func() steps.Applied {
		out := base
		config, err := s.Cluster.Public()
		if err != nil {
			config = base.Config
		}
		out.Config, out.ConfigDigest = config, digest.FromBytes(config).String()
		out.Operation, out.Away = s.operation, s.Away
		if text, err := os.ReadFile(s.Workdir.Applied("kubexm.lock")); err == nil && digest.FromBytes(text).String() == out.LockDigest {
			out.Lock = text
		}
		return out
	}
	for _, h := range s.hosts {
		h.Applied = is
	}
}

// Begin records the hosts that are left as they are: if the run is interrupted, a later one has to
// know what is on them.
func (m *Membership) Begin() error {
	if len(m.Dead) == 0 {
		return nil
	}
	return state.BeginLeaving(m.session.Workdir.Dir, m.Before, m.Dead, time.Now())
}

// End records that the change succeeded.
func (m *Membership) End() error {
	if len(m.Dead) == 0 {
		return nil
	}
	return state.EndLeaving(m.session.Workdir.Dir, m.Dead)
}
