package installer

import (
	"context"
	"fmt"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// Existing finds what an installation would harm in an existing cluster, or would reject: a
// first master whose machine was replaced, and fields, versions and hosts that differ from the
// cluster record. It changes nothing. Without a bundle it skips versions that only a lock
// contains.
func (s *Session) Existing(ctx context.Context) (steps.Findings, error) {
	var b *state.Bundle
	if s.Bundle != nil {
		lock, err := s.Bundle.Document("lock")
		if err != nil {
			return nil, err
		}
		b = &state.Bundle{Components: s.Bundle.Lock.Components(s.Set()), Lock: digest.FromBytes(lock).String()}
	}
	return Existing(ctx, s.Cluster, s.Workdir.Dir, b, s.Host)
}

// MayContinueWithout reports whether an installation may continue without some hosts, as
// state.CheckAway does, and returns the cluster record.
func (s *Session) MayContinueWithout(ctx context.Context, away []string) (*manifest.Existing, error) {
	asked, err := skipLeft(s.Workdir.Dir, s.Host)
	if err != nil {
		return nil, err
	}
	e, err := state.Exists(ctx, s.Cluster, s.Workdir.Dir, asked)
	if err != nil {
		return nil, fmt.Errorf("cluster record: %w", err)
	}
	return e, state.CheckAway(s.Cluster, e, away)
}

// Existing is the same for the hosts that of returns, with the cluster's folder dir. It
// ignores hosts that a deletion has skipped: they are cleaned before anything else.
func Existing(ctx context.Context, c *manifest.Cluster, dir string, b *state.Bundle, of state.Of) (steps.Findings, error) {
	asked, err := skipLeft(dir, of)
	if err != nil {
		return nil, err
	}
	r, err := state.Exists(ctx, c, dir, asked)
	if err != nil {
		return nil, fmt.Errorf("cluster record: %w", err)
	}
	if kept, err := state.Preserved(ctx, c, dir, asked); err != nil || kept {
		return nil, err // the steps check the preserved data
	}
	found, err := state.Replaced(ctx, c, r, dir, asked)
	if err != nil || len(found) > 0 || r == nil {
		return found, err
	}
	return state.Differs(r, c, b), nil
}

// skipLeft returns of without the hosts that a deletion has skipped: their records describe a
// cluster that no longer exists.
func skipLeft(dir string, of state.Of) (state.Of, error) {
	left, err := state.ReadLeft(dir)
	if err != nil {
		return nil, fmt.Errorf("list of hosts that a deletion has skipped: %w", err)
	}
	return func(h manifest.Host) *steps.Host {
		if state.IsLeft(left, h.Name) {
			return nil
		}
		return of(h)
	}, nil
}

// Adopt updates this machine's copy of the cluster record from the cluster or its masters, if
// theirs is newer. It returns the master that it was read from, "" if nothing had to be done,
// and whether an older record was replaced.
func (s *Session) Adopt(ctx context.Context) (from string, replaced bool, err error) {
	return Adopt(ctx, s.Cluster, s.Workdir.Dir, s.Host)
}

// Adopt is the same for the hosts that of returns, with the cluster's folder dir.
func Adopt(ctx context.Context, c *manifest.Cluster, dir string, of state.Of) (from string, replaced bool, err error) {
	asked, err := skipLeft(dir, of)
	if err != nil {
		return "", false, err
	}
	return state.Adopt(ctx, c, dir, asked)
}
