package op

import (
	"context"
	"errors"
	"io/fs"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Dir is a folder. A removal takes it away when kubexm made it: with all that
// is in it where Own is set, else only when it is empty.
type Dir struct {
	noNeeds
	Path string
	Attr runner.Attr // Mode 0 means 0755
	Own  bool        // what is in it is kubexm's, or of what kubexm installed
}

func (d Dir) String() string { return "folder " + d.Path }

// Want makes the folder.
func (d Dir) Want(ctx context.Context, h *steps.Host, _ bool) (*Change, error) {
	i, err := h.Stat(ctx, d.Path)
	existed := err == nil
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case existed && !i.Mode.IsDir():
		return nil, steps.Advise(&fs.PathError{Op: "mkdir", Path: d.Path, Err: errors.New("is not a folder")}, "move %s on %s out of the way", d.Path, h.Name)
	case existed:
		if same, err := sameAttr(ctx, h, d.Path, d.Attr, 0o755); same || err != nil {
			return nil, err
		}
	}
	return &Change{
		What: "make folder " + d.Path,
		Apply: func(ctx context.Context, h *steps.Host) error {
			if err := remember(ctx, h, d, entry{Existed: existed}); err != nil {
				return err
			}
			_, err := h.Mkdir(ctx, d.Path, d.Attr)
			return err
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if existed {
				return nil
			}
			if err := h.RemoveDir(ctx, d.Path); err != nil && !errors.Is(err, runner.ErrNotEmpty) {
				return err
			}
			return forget(ctx, h, d)
		},
	}, nil
}

// Gone removes the folder where kubexm made it.
func (d Dir) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	e, recorded, err := recall(ctx, h, d)
	if err != nil {
		return nil, err
	}
	_, err = h.Stat(ctx, d.Path)
	here := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	switch {
	case recorded && e.Existed:
		return &Change{What: "leave folder " + d.Path, Apply: func(ctx context.Context, h *steps.Host) error { return forget(ctx, h, d) }}, nil
	case !here && !recorded, here && !recorded && !d.Own:
		return nil, nil
	}
	return &Change{What: "remove folder " + d.Path, Apply: func(ctx context.Context, h *steps.Host) error {
		var err error
		if d.Own {
			err = h.RemoveAll(ctx, d.Path)
		} else if err = h.RemoveDir(ctx, d.Path); errors.Is(err, runner.ErrNotEmpty) {
			err = nil // somebody else's files are in it
		}
		return errors.Join(err, forget(ctx, h, d))
	}}, nil
}
