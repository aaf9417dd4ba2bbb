package installer

import (
	"context"
	"fmt"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// Existing finds what an installation would harm in a cluster that exists, or would say
// of it and not do: a first master whose machine was replaced, and fields, versions and
// hosts that differ from what was applied. It only looks; without a bundle it passes
// over versions that a lock alone knows.
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

// GoesWithout tells whether an installation may go on without some hosts, as
// state.CheckAway does, and gives what was applied to the cluster.
func (s *Session) GoesWithout(ctx context.Context, away []string) (*manifest.Existing, error) {
	asked, err := standing(s.Workdir.Dir, s.Host)
	if err != nil {
		return nil, err
	}
	e, err := state.Exists(ctx, s.Cluster, s.Workdir.Dir, asked)
	if err != nil {
		return nil, fmt.Errorf("what was applied to the cluster: %w", err)
	}
	return e, state.CheckAway(s.Cluster, e, away)
}

// Existing is the same for hosts that of gives, with the cluster's folder dir. A host
// that a deletion has left behind is cleaned before anything else, and not asked.
func Existing(ctx context.Context, c *manifest.Cluster, dir string, b *state.Bundle, of state.Of) (steps.Findings, error) {
	asked, err := standing(dir, of)
	if err != nil {
		return nil, err
	}
	r, err := state.Exists(ctx, c, dir, asked)
	if err != nil {
		return nil, fmt.Errorf("what was applied to the cluster: %w", err)
	}
	if kept, err := state.Preserved(ctx, c, dir, asked); err != nil || kept {
		return nil, err // the steps look at what was kept
	}
	found, err := state.Replaced(ctx, c, r, dir, asked)
	if err != nil || len(found) > 0 || r == nil {
		return found, err
	}
	return state.Differs(r, c, b), nil
}

// standing is of without the hosts that a deletion has left behind: what they remember is
// of a cluster that is gone.
func standing(dir string, of state.Of) (state.Of, error) {
	left, err := state.ReadLeft(dir)
	if err != nil {
		return nil, fmt.Errorf("hosts that a deletion has left: %w", err)
	}
	return func(h manifest.Host) *steps.Host {
		if state.IsLeft(left, h.Name) {
			return nil
		}
		return of(h)
	}, nil
}

// Adopt brings this machine's record of the cluster to what the cluster or its masters
// have, where that is newer. It gives the master that told it, "" where nothing was to do,
// and whether an older record was replaced.
func (s *Session) Adopt(ctx context.Context) (from string, replaced bool, err error) {
	return Adopt(ctx, s.Cluster, s.Workdir.Dir, s.Host)
}

// Adopt is the same for hosts that of gives, with the cluster's folder dir.
func Adopt(ctx context.Context, c *manifest.Cluster, dir string, of state.Of) (from string, replaced bool, err error) {
	asked, err := standing(dir, of)
	if err != nil {
		return "", false, err
	}
	return state.Adopt(ctx, c, dir, asked)
}
