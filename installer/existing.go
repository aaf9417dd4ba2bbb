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
	r, err := state.Read(ctx, s.Cluster, s.Workdir.Dir, s.Host)
	if err != nil {
		return nil, fmt.Errorf("what was applied to the cluster: %w", err)
	}
	if err := state.CheckAway(s.Cluster, r, away); err != nil {
		return nil, err
	}
	return r.Existing(), nil
}

// Existing is the same for hosts that of gives, with the cluster's folder dir. A host
// that a deletion has left behind is cleaned before anything else, and not asked.
func Existing(ctx context.Context, c *manifest.Cluster, dir string, b *state.Bundle, of state.Of) (steps.Findings, error) {
	left, err := state.ReadLeft(dir)
	if err != nil {
		return nil, fmt.Errorf("hosts that a deletion has left: %w", err)
	}
	asked := func(h manifest.Host) *steps.Host {
		if state.IsLeft(left, h.Name) {
			return nil
		}
		return of(h)
	}
	r, err := state.Read(ctx, c, dir, asked)
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
	return r.Differs(c, b), nil
}
