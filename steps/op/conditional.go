package op

import (
	"context"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// When returns rs as conditional resources: they are applied only if when reports true
// for the host. A removal ignores the condition and removes whatever is on record.
func When(when func(context.Context, *steps.Host) (bool, error), rs ...Resource) []Resource {
	out := make([]Resource, 0, len(rs))
	for _, r := range rs {
		g := given{Resource: r, when: when}
		if a, ok := r.(Around); ok {
			out = append(out, givenAround{g, a})
			continue
		}
		out = append(out, g)
	}
	return out
}

type given struct {
	Resource
	when func(context.Context, *steps.Host) (bool, error)
}

// Want evaluates the condition first.
func (g given) Want(ctx context.Context, h *steps.Host, changed bool) (*Change, error) {
	if ok, err := g.when(ctx, h); err != nil || !ok {
		return nil, err
	}
	return g.Resource.Want(ctx, h, changed)
}

// Needs returns the needs of the resource, regardless of the condition.
func (g given) Needs() []manifest.Need { return g.Resource.Needs() }

// givenAround is given for an Around.
type givenAround struct {
	given
	a Around
}

func (g givenAround) Expect(ctx context.Context, h *steps.Host) (*Change, error) {
	if ok, err := g.when(ctx, h); err != nil || !ok {
		return &Change{Apply: func(context.Context, *steps.Host) error { return nil }}, err
	}
	return g.a.Expect(ctx, h)
}

func (g givenAround) Settle(ctx context.Context, h *steps.Host) (*Change, error) {
	return g.a.Settle(ctx, h)
}
