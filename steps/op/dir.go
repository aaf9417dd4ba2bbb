package op

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Dir is a folder. A removal deletes it if kubexm created it: with its content if Own is
// set, otherwise only if it is empty. Parent folders that were created for it are deleted
// as well, once they are empty.
type Dir struct {
	NoNeeds
	Path string
	Attr runner.Attr // Mode 0 means 0755
	Own  bool        // its content belongs to kubexm or to programs that kubexm installed
	// Login means that the folder belongs to the login user: that user creates and
	// removes it, not root.
	Login bool
}

func (d Dir) String() string { return "folder " + d.Path }

// Without returns rs without the folder dir. A removal of that list keeps the folder and
// its content. The record that kubexm created it stays.
func Without(rs []Resource, dir string) []Resource {
	return slices.DeleteFunc(slices.Clone(rs), func(r Resource) bool { return r.String() == Dir{Path: dir}.String() })
}

// Want creates the folder, or sets mode and owner of an existing one.
func (d Dir) Want(ctx context.Context, h *steps.Host, _ bool) (*Change, error) {
	i, err := as(h, d.Login).Stat(ctx, d.Path)
	existed := err == nil
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case existed && !i.IsDir():
		return nil, steps.Advise(&fs.PathError{Op: "mkdir", Path: d.Path, Err: errors.New("is not a folder")}, "move %s on %s out of the way", d.Path, h.Name)
	case existed && i.Has(d.Attr):
		return nil, nil
	}
	e := Record{Existed: existed}
	what := "create folder " + d.Path
	if existed {
		a := i.Attr()
		e.Mode, e.Owner, e.Group = a.Mode, a.Owner, a.Group
		what = "set mode of folder " + d.Path
	}
	first := false
	return &Change{
		What: what,
		Apply: func(ctx context.Context, h *steps.Host) error {
			_, recorded, err := ReadRecord(ctx, h, d)
			if err != nil {
				return err
			}
			if e.Made, err = missingAbove(ctx, as(h, d.Login), d.Path, existed); err != nil {
				return err
			}
			if first = !recorded; first {
				if err := Remember(ctx, h, d, e); err != nil {
					return err
				}
			}
			_, err = as(h, d.Login).Mkdir(ctx, d.Path, d.Attr)
			return adviseOwner(h, d.Login, d.Path, err)
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			left, err := d.restore(ctx, h, e, false)
			if err != nil || !first || left && d.Own {
				return err // a service has written files: they stay for the next run, and the record for a removal
			}
			return Forget(ctx, h, d)
		},
	}, nil
}

// missingAbove returns the parent folders of p that do not exist, the outermost first.
func missingAbove(ctx context.Context, h *runner.Runner, p string, existed bool) ([]string, error) {
	var out []string
	for dir := path.Dir(p); !existed; dir = path.Dir(dir) {
		exists, err := h.Exists(ctx, dir)
		if err != nil {
			return nil, err
		}
		if exists {
			break
		}
		out = append(out, dir)
	}
	slices.Reverse(out)
	return out, nil
}

// Gone removes the folder if kubexm created it, or restores its mode and owner.
func (d Dir) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	e, recorded, err := ReadRecord(ctx, h, d)
	if err != nil || !recorded {
		return nil, err
	}
	what := "remove folder " + d.Path
	if e.Existed {
		what = "restore the mode of folder " + d.Path
	}
	return &Change{What: what, Apply: func(ctx context.Context, h *steps.Host) error {
		if _, err := d.restore(ctx, h, e, d.Own); err != nil {
			return err
		}
		return Forget(ctx, h, d)
	}}, nil
}

// restore brings the folder to the state of e. If it did not exist, all decides whether
// it is removed with its content or only if it is empty. left reports that it still
// exists because it is not empty.
func (d Dir) restore(ctx context.Context, h *steps.Host, e Record, all bool) (left bool, err error) {
	by := as(h, d.Login)
	if e.Existed {
		err := by.SetAttr(ctx, d.Path, e.attr())
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return false, err
	}
	if all {
		err := by.RemoveAll(ctx, d.Path)
		// Root may own files in a user's folder, such as kubectl's cache. Removing them as
		// root is safe: rm -r follows no symbolic link below the user's home.
		if by != h.Runner && runner.Refused(err) {
			err = h.RemoveAll(ctx, d.Path)
		}
		if err != nil {
			return false, err
		}
	}
	for _, dir := range slices.Backward(append(slices.Clone(e.Made), d.Path)) {
		err := by.RemoveDir(ctx, dir)
		if errors.Is(err, runner.ErrNotEmpty) {
			return dir == d.Path, nil // it contains files of others
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}
