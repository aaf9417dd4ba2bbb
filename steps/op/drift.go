package op

import (
	"context"
	"fmt"

	"github.com/mensylisir/kubexm/steps"
)

// Drift inspects each resource separately: a difference of one does not count as a
// change for those that depend on it.
func (s *state) Drift(ctx context.Context, h *steps.Host) []steps.ResourceState {
	var out []steps.ResourceState
	for _, r := range s.list(h) {
		all, several := r.(together)
		if !several {
			out = append(out, s.piece(ctx, h, r))
			continue
		}
		if c, err := all.Want(ctx, h, false); err == nil && c == nil {
			continue // one command has compared all of them
		}
		for _, b := range all {
			out = append(out, s.piece(ctx, h, b))
		}
	}
	return out
}

func (s *state) piece(ctx context.Context, h *steps.Host, r Resource) steps.ResourceState {
	if u, ok := r.(Unit); ok { // an idle unit that another step starts must run once the cluster exists
		u.Idle = false
		r = u
	}
	p := steps.ResourceState{Name: r.String()}
	want := func(ctx context.Context, h *steps.Host) (*Change, error) { return r.Want(ctx, h, false) }
	if s.gone {
		want = r.Gone
	}
	c, err := want(ctx, h)
	switch {
	case IsLater(err): // its inputs do not exist, so the resource cannot have the desired state
		p.What = "create " + p.Name
	case err != nil:
		p.Err = fmt.Errorf("%s: %w", r, err)
	case c != nil:
		p.What, p.Diff = c.What, c.Diff
	}
	return p
}
