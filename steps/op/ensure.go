package op

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mensylisir/kubexm/steps"
)

// Option changes the meta data of a step.
type Option func(*steps.Meta)

// Upload marks a step that moves much data.
func Upload(m *steps.Meta) { m.Upload = true }

// Destroys marks a step that deletes data.
func Destroys(m *steps.Meta) { m.Risk = steps.Destroys }

type state struct {
	meta      steps.Meta
	resources func(*steps.Host) []Resource
	gone      bool
}

// always gives the same resources on every host.
func always(rs []Resource) func(*steps.Host) []Resource {
	return func(*steps.Host) []Resource { return rs }
}

// Later says that what a resource wants cannot be worked out before an earlier
// step has run. A look at the host passes it over; a change fails with it.
func Later(err error) error { return &laterError{err} }

type laterError struct{ error }

// IsLater tells whether err is one of Later's.
func IsLater(err error) bool {
	var later *laterError
	return errors.As(err, &later)
}

func (e *laterError) Unwrap() error { return e.error }

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
	return &state{meta: m, resources: always(rs)}
}

// Remove brings a host to none of rs, in reverse: a removal is the list of the
// installation, so the two cannot drift apart. It is not rolled back: one that
// was cut off is run again.
func Remove(name string, rs []Resource, opts ...Option) steps.Step {
	m := steps.Meta{Name: name, OneWay: true}
	for _, o := range opts {
		o(&m)
	}
	return &state{meta: m, resources: always(rs), gone: true}
}

// EnsureOn is Ensure for resources that differ from host to host. They open no
// artifact.
func EnsureOn(name string, of func(*steps.Host) []Resource, opts ...Option) steps.Step {
	m := steps.Meta{Name: name}
	for _, o := range opts {
		o(&m)
	}
	return &state{meta: m, resources: of}
}

// RemoveOn is its inverse.
func RemoveOn(name string, of func(*steps.Host) []Resource, opts ...Option) steps.Step {
	m := steps.Meta{Name: name, OneWay: true}
	for _, o := range opts {
		o(&m)
	}
	return &state{meta: m, resources: of, gone: true}
}

// list gives the resources in the order in which they are gone through.
func (s *state) list(h *steps.Host) []Resource {
	rs := s.resources(h)
	if !s.gone {
		return joined(rs)
	}
	rs = slices.Clone(rs)
	slices.Reverse(rs)
	return rs
}

func (s *state) Meta() steps.Meta { return s.meta }

// Resources names what the host is to have, or to have no more.
func (s *state) Resources(h *steps.Host) []string {
	var out []string
	for _, r := range s.resources(h) {
		out = append(out, r.String())
	}
	return out
}

func (s *state) change(ctx context.Context, h *steps.Host, r Resource, earlier bool) (*Change, error) {
	var c *Change
	var err error
	if s.gone {
		c, err = r.Gone(ctx, h)
	} else {
		c, err = r.Want(ctx, h, earlier)
	}
	var later *laterError
	if errors.As(err, &later) {
		return &Change{What: "make " + r.String(), Apply: func(context.Context, *steps.Host) error { return later.error }}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r, err)
	}
	return c, nil
}

// changes hands each change that is due to do, in order. What is due is asked
// when its turn comes: earlier changes bring it about, or make it unnecessary.
func (s *state) changes(ctx context.Context, h *steps.Host, do func(i int, r Resource, c *Change) error) error {
	changed := false
	rs := s.list(h)
	for i, r := range rs {
		c, err := s.change(ctx, h, r, changed)
		if err != nil {
			return err
		}
		if c == nil {
			continue
		}
		if err := do(i, r, c); err != nil {
			return err
		}
		changed = true
	}
	if !s.gone {
		return nil
	}
	for i, r := range slices.Backward(rs) { // the order of the installation
		a, ok := r.(Around)
		if !ok {
			continue
		}
		c, err := a.Settle(ctx, h)
		if err != nil {
			return fmt.Errorf("%s: %w", r, err)
		}
		if c == nil {
			continue
		}
		if err := do(i, r, c); err != nil {
			return err
		}
	}
	return nil
}

// errTodo ends a Precheck at the first change that is due.
var errTodo = errors.New("something is to be done")

// Precheck finds the first resource that is not as it should be.
func (s *state) Precheck(ctx context.Context, h *steps.Host) (steps.Verdict, error) {
	err := s.changes(ctx, h, func(int, Resource, *Change) error { return errTodo })
	if errors.Is(err, errTodo) {
		return steps.Todo, nil
	}
	if err != nil {
		return steps.Todo, err
	}
	return steps.Done, nil
}

// Diff says what Run would change.
func (s *state) Diff(ctx context.Context, h *steps.Host) ([]string, error) {
	var out []string
	err := s.changes(ctx, h, func(_ int, _ Resource, c *Change) error {
		line := c.What
		if c.Diff != "" {
			line += "\n" + c.Diff
		}
		out = append(out, line)
		return nil
	})
	return out, err
}

// Run changes what is not as it should be.
func (s *state) Run(ctx context.Context, h *steps.Host) error {
	changed := false
	err := s.changes(ctx, h, func(i int, r Resource, c *Change) error {
		if !changed && !s.gone {
			h.OnRollback(func(ctx context.Context) error { return prune(ctx, h) })
			if err := s.expect(ctx, h, i); err != nil {
				return err
			}
		}
		changed = true
		h.Log.InfoContext(ctx, "change", "what", c.What)
		return apply(ctx, h, r, c)
	})
	if err != nil || !changed || !s.gone {
		return err
	}
	return prune(ctx, h)
}

// expect tells the resources from i on that something changes.
func (s *state) expect(ctx context.Context, h *steps.Host, i int) error {
	for _, r := range s.list(h)[i:] {
		a, ok := r.(Around)
		if !ok {
			continue
		}
		c, err := a.Expect(ctx, h)
		if err != nil {
			return fmt.Errorf("%s: %w", r, err)
		}
		if err := apply(ctx, h, r, c); err != nil {
			return err
		}
	}
	return nil
}

// apply makes a change. Its way back is known before it begins: one that fails
// half way is undone as well.
func apply(ctx context.Context, h *steps.Host, r Resource, c *Change) error {
	if c.Undo != nil {
		h.OnRollback(func(ctx context.Context) error { return c.Undo(ctx, h) })
	}
	if err := c.Apply(ctx, h); err != nil {
		return fmt.Errorf("%s: %w", r, err)
	}
	return nil
}

func (s *state) Rollback(ctx context.Context, h *steps.Host) error { return h.Unwind(ctx) }
