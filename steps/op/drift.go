package op

import (
	"context"
	"fmt"

	"github.com/mensylisir/kubexm/steps"
)

// Drift looks at each resource by itself: none is asked what it wants because another
// one differs.
func (s *state) Drift(ctx context.Context, h *steps.Host) []steps.Piece {
	var out []steps.Piece
	for _, r := range s.list(h) {
		all, whole := r.(together)
		if !whole {
			out = append(out, s.piece(ctx, h, r))
			continue
		}
		if c, err := all.Want(ctx, h, false); err == nil && c == nil {
			continue // one command has looked at all of them
		}
		for _, b := range all {
			out = append(out, s.piece(ctx, h, b))
		}
	}
	return out
}

func (s *state) piece(ctx context.Context, h *steps.Host, r Resource) steps.Piece {
	if u, ok := r.(Unit); ok { // what others start while a cluster is made, runs once it is
		u.Idle = false
		r = u
	}
	p := steps.Piece{Name: r.String()}
	want := func(ctx context.Context, h *steps.Host) (*Change, error) { return r.Want(ctx, h, false) }
	if s.gone {
		want = r.Gone
	}
	c, err := want(ctx, h)
	switch {
	case IsLater(err): // what it is made of is not there, and so it cannot be as it should be
		p.What = "make " + p.Name
	case err != nil:
		p.Err = fmt.Errorf("%s: %w", r, err)
	case c != nil:
		p.What, p.Diff = c.What, c.Diff
	}
	return p
}
