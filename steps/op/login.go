package op

import (
	"context"
	"errors"
	"io/fs"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// as returns the Runner of the login user if login is set, otherwise h's. Files of the
// login user are never changed as root: root would follow links that the user creates
// meanwhile.
func as(h *steps.Host, login bool) *runner.Runner {
	if !login || h.Login.User == "" || h.Login.User == "root" {
		return h.Runner
	}
	return h.Runner.AsLogin()
}

// adviseOwner adds advice to err if it concerns a file that the login user writes.
func adviseOwner(h *steps.Host, login bool, path string, err error) error {
	if as(h, login) == h.Runner {
		return err
	}
	return steps.Advise(err, "check on %s that %s and its content belong to %s: `ls -la %s`", h.Name, path, h.Login.User, path)
}

// replaceAsLogin is replaceFile for a file of the login user. The original is copied
// through this process: the user reads it and root writes the record, because neither
// may do both.
func (f File) replaceAsLogin(i runner.Info, existed bool, want []byte) *Change {
	var first, wrote bool
	suffix := func() string {
		if first {
			return suffixFirst
		}
		return suffixLast
	}
	return &Change{
		What: "write " + f.Path,
		Apply: func(ctx context.Context, h *steps.Host) error {
			_, recorded, err := ReadRecord(ctx, h, f)
			if err != nil {
				return err
			}
			if first = !recorded; first {
				if err := makeRecordDir(ctx, h); err != nil {
					return err
				}
			}
			if existed {
				if err := f.saveAsLogin(ctx, h, i, recordPath(h, f, suffix())); err != nil {
					return err
				}
			}
			if first {
				if err := Rewrite(ctx, h, f, Record{Existed: existed}); err != nil {
					return err
				}
			}
			wrote = true
			return adviseOwner(h, true, f.Path, as(h, true).WriteFile(ctx, f.Path, want, f.Attr))
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if wrote {
				if err := f.putAsLogin(ctx, h, existed, recordPath(h, f, suffix())); err != nil {
					return err
				}
			}
			if !first {
				return h.Remove(ctx, recordPath(h, f, suffixLast))
			}
			return Forget(ctx, h, f)
		},
	}
}

// saveAsLogin copies the user's file, or the link in its place, to the record.
func (f File) saveAsLogin(ctx context.Context, h *steps.Host, i runner.Info, record string) error {
	if i.IsLink() {
		return h.Link(ctx, i.Target, record)
	}
	data, err := as(h, true).ReadFile(ctx, f.Path)
	if err != nil {
		return err
	}
	return h.WriteFile(ctx, record, data, runner.Attr{Mode: i.Attr().Mode})
}

// putAsLogin restores the file that saveAsLogin saved, or removes the file if it did not
// exist before.
func (f File) putAsLogin(ctx context.Context, h *steps.Host, existed bool, record string) error {
	by := as(h, true)
	if err := by.Discard(ctx, f.Path); err != nil {
		return err
	}
	if !existed {
		return by.Remove(ctx, f.Path)
	}
	i, err := h.Stat(ctx, record)
	if err != nil {
		return err
	}
	if i.IsLink() { // never followed: root would read what the user cannot
		return by.Link(ctx, i.Target, f.Path)
	}
	data, err := h.ReadFile(ctx, record)
	if err != nil {
		return err
	}
	return by.WriteFile(ctx, f.Path, data, runner.Attr{Mode: i.Attr().Mode})
}

// restoreAsLogin is restoreFile for a file of the login user.
func (f File) restoreAsLogin(ctx context.Context, h *steps.Host) (*Change, error) {
	e, recorded, err := ReadRecord(ctx, h, f)
	if err != nil || !recorded {
		return nil, err
	}
	what := "remove " + f.Path
	if e.Existed {
		what = "restore " + f.Path
	}
	return &Change{What: what, Apply: func(ctx context.Context, h *steps.Host) error {
		err := f.putAsLogin(ctx, h, e.Existed, recordPath(h, f, suffixFirst))
		if errors.Is(err, fs.ErrNotExist) { // an interrupted run has already restored it
			err = nil
		}
		if err != nil {
			return err
		}
		return Forget(ctx, h, f)
	}}, nil
}
