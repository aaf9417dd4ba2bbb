package op

import (
	"context"

	"github.com/mensylisir/kubexm/steps"
)

// Link is a symbolic link.
type Link struct {
	NoNeeds
	Path   string
	Target string // as it stands in the link: relative to the folder of Path, or absolute
}

func (l Link) String() string { return "link " + l.Path }

// Want compares where the link leads to. What is there in its place, a file or
// another link, is kept until a removal.
func (l Link) Want(ctx context.Context, h *steps.Host, _ bool) (*Change, error) {
	i, existed, err := look(ctx, h, l.Path)
	if err != nil || existed && i.IsLink() && i.Target == l.Target {
		return nil, err
	}
	c := replaceFile(l, l.Path, existed, func(ctx context.Context, h *steps.Host) error {
		return h.Link(ctx, l.Target, l.Path)
	})
	c.What = "link " + l.Path + " to " + l.Target
	return c, nil
}

// Gone removes the link, or puts back what was there before.
func (l Link) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	return restoreFile(ctx, h, l, l.Path)
}
