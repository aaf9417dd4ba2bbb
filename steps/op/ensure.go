package op

import (
	"context"
	"fmt"
	"slices"

	"github.com/mensylisir/kubexm/steps"
)

// Option changes the meta data of a step.
type Option func(*steps.Meta)

// Upload marks a step that moves much data.
func Upload(m *steps.Meta) { m.Upload = true }

// Disruptive marks a step that restarts something.
func Disruptive(m *steps.Meta) { m.Risk = steps.Disruptive }

// Destroys marks a step that deletes data.
func Destroys(m *steps.Meta) { m.Risk = steps.Destroys }

type state struct {
	meta      steps.Meta
	resources []Resource
	gone      bool
}

// Ensure brings a host to all of rs, in order.
func Ensure(name string, rs []Resource, opts ...Option) steps.Step {
	m := steps.Meta{Name: name}
	for _, r := range rs {
		for _, n := range r.Needs() {
			if !slices.Contains(m.Needs, n) {
				m.Needs = append(m.Needs, n)
			}
		}
	}
	for _, o := range opts {
		o(&m)
	}
	return &state{meta: m, resources: rs}
}

// Remove brings a host to none of rs, in reverse: a removal is the list of the
// installation, so the two cannot drift apart.
func Remove(name string, rs []Resource, opts ...Option) steps.Step {
	m := steps.Meta{Name: name}
	for _, o := range opts {
		o(&m)
	}
	back := slices.Clone(rs)
	slices.Reverse(back)
	return &state{meta: m, resources: back, gone: true}
}

func (s *state) Meta() steps.Meta { return s.meta }

func (s *state) change(ctx context.Context, h *steps.Host, r Resource, earlier bool) (*Change, error) {
	var c *Change
	var err error
	if s.gone {
		c, err = r.Gone(ctx, h)
	} else {
		c, err = r.Want(ctx, h, earlier)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r, err)
	}
	return c, nil
}

// Precheck finds the first resource that is not as it should be.
func (s *state) Precheck(ctx context.Context, h *steps.Host) (steps.Verdict, error) {
	for _, r := range s.resources {
		c, err := s.change(ctx, h, r, false)
		if err != nil || c != nil {
			return steps.Todo, err
		}
	}
	return steps.Done, nil
}

// Diff says what Run would change.
func (s *state) Diff(ctx context.Context, h *steps.Host) ([]string, error) {
	var out []string
	for _, r := range s.resources {
		c, err := s.change(ctx, h, r, len(out) > 0)
		if err != nil {
			return out, err
		}
		if c == nil {
			continue
		}
		line := c.What
		if c.Diff != "" {
			line += "\n" + c.Diff
		}
		out = append(out, line)
	}
	return out, nil
}

// Run changes what is not as it should be.
func (s *state) Run(ctx context.Context, h *steps.Host) error {
	changed := false
	for _, r := range s.resources {
		c, err := s.change(ctx, h, r, changed)
		if err != nil {
			return err
		}
		if c == nil {
			continue
		}
		changed = true
		h.Log.InfoContext(ctx, c.What)
		if c.Undo != nil {
			h.OnRollback(func(ctx context.Context) error { return c.Undo(ctx, h) })
		}
		if err := c.Apply(ctx, h); err != nil {
			return fmt.Errorf("%s: %w", r, err)
		}
	}
	return nil
}

func (s *state) Rollback(ctx context.Context, h *steps.Host) error { return h.Unwind(ctx) }
