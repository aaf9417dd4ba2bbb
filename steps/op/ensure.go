package op

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mensylisir/kubexm/steps"
)

// Option changes the Meta of a step.
type Option func(*steps.Meta)

// Upload marks a step that transfers large files: see steps.Meta.
func Upload(m *steps.Meta) { m.Upload = true }

// Destroys marks a step that deletes data: see steps.Risk.
func Destroys(m *steps.Meta) { m.Risk = steps.Destroys }

type state struct {
	meta      steps.Meta
	resources func(*steps.Host) []Resource
	gone      bool
}

// always returns the same resources for every host.
func always(rs []Resource) func(*steps.Host) []Resource {
	return func(*steps.Host) []Resource { return rs }
}

// Later marks an error of Resource.Want: the desired state cannot be computed before an
// earlier step has run. Precheck and Diff treat the resource as not yet existing. Run
// fails with err.
func Later(err error) error { return &laterError{err} }

type laterError struct{ error }

// IsLater reports whether err was marked by Later.
func IsLater(err error) bool {
	var later *laterError
	return errors.As(err, &later)
}

func (e *laterError) Unwrap() error { return e.error }

// Ensure returns a step that brings all resources of rs into their desired state, in
// order.
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

// Remove returns a step that removes all resources of rs, in reverse order. It takes the
// list of the installation, so that the two cannot diverge. It has no rollback: an
// interrupted removal is run again.
func Remove(name string, rs []Resource, opts ...Option) steps.Step {
	m := steps.Meta{Name: name, OneWay: true}
	for _, o := range opts {
		o(&m)
	}
	return &state{meta: m, resources: always(rs), gone: true}
}

// EnsureOn is Ensure for resources that depend on the host. They must not open
// artifacts.
func EnsureOn(name string, of func(*steps.Host) []Resource, opts ...Option) steps.Step {
	m := steps.Meta{Name: name}
	for _, o := range opts {
		o(&m)
	}
	return &state{meta: m, resources: of}
}

// RemoveOn is Remove for resources that depend on the host.
func RemoveOn(name string, of func(*steps.Host) []Resource, opts ...Option) steps.Step {
	m := steps.Meta{Name: name, OneWay: true}
	for _, o := range opts {
		o(&m)
	}
	return &state{meta: m, resources: of, gone: true}
}

// list returns the resources in the order in which they are processed.
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

// Resources returns the names of the resources that the step ensures or removes.
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
		return &Change{What: "create " + r.String(), Apply: func(context.Context, *steps.Host) error { return later.error }}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r, err)
	}
	return c, nil
}

// changes calls do for each due change, in order. It computes each change only after the
// previous ones were handled, because they may cause it or make it unnecessary.
func (s *state) changes(ctx context.Context, h *steps.Host, do func(ctx context.Context, i int, r Resource, c *Change) error) error {
	ctx = withRecords(ctx, h)
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
		if err := do(ctx, i, r, c); err != nil {
			return err
		}
		changed = true
	}
	if !s.gone {
		return nil
	}
	for i, r := range slices.Backward(rs) { // in the order of the installation
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
		if err := do(ctx, i, r, c); err != nil {
			return err
		}
	}
	return nil
}

// errTodo stops a Precheck at the first due change.
var errTodo = errors.New("a change is due")

// Precheck returns Todo at the first resource that does not have the desired state.
func (s *state) Precheck(ctx context.Context, h *steps.Host) (steps.Verdict, error) {
	err := s.changes(ctx, h, func(context.Context, int, Resource, *Change) error { return errTodo })
	if errors.Is(err, errTodo) {
		return steps.Todo, nil
	}
	if err != nil {
		return steps.Todo, err
	}
	return steps.Done, nil
}

// Diff lists what Run would change.
func (s *state) Diff(ctx context.Context, h *steps.Host) ([]string, error) {
	var out []string
	err := s.changes(ctx, h, func(_ context.Context, _ int, _ Resource, c *Change) error {
		line := c.What
		if c.Diff != "" {
			line += "\n" + c.Diff
		}
		out = append(out, line)
		return nil
	})
	return out, err
}

// Run applies the due changes.
func (s *state) Run(ctx context.Context, h *steps.Host) error {
	changed := false
	err := s.changes(ctx, h, func(ctx context.Context, i int, r Resource, c *Change) error {
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

// expect calls Expect of the resources from i on, before the first change.
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

// apply applies a change. It registers Undo first, so that a change that fails halfway
// is undone as well.
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
