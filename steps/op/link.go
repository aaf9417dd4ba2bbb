package op

import (
	"context"

	"github.com/mensylisir/kubexm/steps"
)

// Link is a symbolic link.
type Link struct {
	NoNeeds
	Path   string
	Target string // relative to the folder of Path, or absolute
}

func (l Link) String() string { return "link " + l.Path }

// Want creates the link if it does not exist or has another target. An existing file or
// link at Path is saved and restored by a removal.
func (l Link) Want(ctx context.Context, h *steps.Host, _ bool) (*Change, error) {
	i, existed, err := stat(ctx, h, l.Path)
	if err != nil || existed && i.IsLink() && i.Target == l.Target {
		return nil, err
	}
	c := replaceFile(l, l.Path, existed, func(ctx context.Context, h *steps.Host) error {
		return h.Link(ctx, l.Target, l.Path)
	})
	c.What = "link " + l.Path + " to " + l.Target
	return c, nil
}

// Gone removes the link, or restores the original file.
func (l Link) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	return restoreFile(ctx, h, l, l.Path)
}
