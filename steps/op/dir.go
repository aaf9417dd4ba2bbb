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

// Dir is a folder. A removal takes it away when kubexm made it: with all that
// is in it where Own is set, else only when it is empty. Folders above it that
// were made for it go as well, once they are empty.
type Dir struct {
	NoNeeds
	Path string
	Attr runner.Attr // Mode 0 means 0755
	Own  bool        // what is in it is kubexm's, or of what kubexm installed
	// Login says that it is the login user's: that user makes and removes it, not root.
	Login bool
}

func (d Dir) String() string { return "folder " + d.Path }

// Without is a list of resources without a folder of it, which a removal then
// leaves with all that is in it. That kubexm made it stays on record.
func Without(rs []Resource, dir string) []Resource {
	return slices.DeleteFunc(slices.Clone(rs), func(r Resource) bool { return r.String() == Dir{Path: dir}.String() })
}

// Want makes the folder, or gives the one that is there its mode and owner.
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
	what := "make folder " + d.Path
	if existed {
		a := i.Attr()
		e.Mode, e.Owner, e.Group = a.Mode, a.Owner, a.Group
		what = "set mode of folder " + d.Path
	}
	first := false
	return &Change{
		What: what,
		Apply: func(ctx context.Context, h *steps.Host) error {
			_, recorded, err := Recall(ctx, h, d)
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
			return theirOwn(h, d.Login, d.Path, err)
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			left, err := d.back(ctx, h, e, false)
			if err != nil || !first || left && d.Own {
				return err // what a service put into it stays for the next run, and a removal has to know that it may go
			}
			return Forget(ctx, h, d)
		},
	}, nil
}

// missingAbove gives the folders above p that are not there, the outermost first.
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

// Gone removes the folder where kubexm made it.
func (d Dir) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	e, recorded, err := Recall(ctx, h, d)
	if err != nil || !recorded {
		return nil, err
	}
	what := "remove folder " + d.Path
	if e.Existed {
		what = "put back the mode of folder " + d.Path
	}
	return &Change{What: what, Apply: func(ctx context.Context, h *steps.Host) error {
		if _, err := d.back(ctx, h, e, d.Own); err != nil {
			return err
		}
		return Forget(ctx, h, d)
	}}, nil
}

// back brings the folder to the state of e: with all that is in it, or when it
// is empty. left tells that it is there still, because it is not.
func (d Dir) back(ctx context.Context, h *steps.Host, e Record, all bool) (left bool, err error) {
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
			return dir == d.Path, nil // somebody else's files are in it
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}
