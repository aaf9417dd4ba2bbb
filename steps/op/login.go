package op

import (
	"context"
	"errors"
	"io/fs"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// as gives who acts on what belongs to the login user: that user. Root would follow
// links that the user puts in its way, at any moment.
func as(h *steps.Host, login bool) *runner.Runner {
	if !login || h.Login.User == "" || h.Login.User == "root" {
		return h.Runner
	}
	return h.Runner.AsLogin()
}

// theirOwn gives the reader of err something to look at where it is about a file that
// the login user writes.
func theirOwn(h *steps.Host, login bool, path string, err error) error {
	if as(h, login) == h.Runner {
		return err
	}
	return steps.Advise(err, "see on %s whether %s and what is in it belong to %s: ls -la %s", h.Name, path, h.Login.User, path)
}

// theirs is replaceFile for a file of the login user. What was there goes on record
// through this process, read by the user and written by root: neither may do both.
func (f File) theirs(i runner.Info, existed bool, want []byte) *Change {
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
			_, recorded, err := Recall(ctx, h, f)
			if err != nil {
				return err
			}
			if first = !recorded; first {
				if err := makeRecordDir(ctx, h); err != nil {
					return err
				}
			}
			if existed {
				if err := f.keepTheirs(ctx, h, i, recordPath(h, f, suffix())); err != nil {
					return err
				}
			}
			if first {
				if err := Rewrite(ctx, h, f, Record{Existed: existed}); err != nil {
					return err
				}
			}
			wrote = true
			return theirOwn(h, true, f.Path, as(h, true).WriteFile(ctx, f.Path, want, f.Attr))
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if wrote {
				if err := f.putTheirs(ctx, h, existed, recordPath(h, f, suffix())); err != nil {
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

// keepTheirs puts the user's file, or the link in its place, on record.
func (f File) keepTheirs(ctx context.Context, h *steps.Host, i runner.Info, record string) error {
	if i.IsLink() {
		return h.Link(ctx, i.Target, record)
	}
	data, err := as(h, true).ReadFile(ctx, f.Path)
	if err != nil {
		return err
	}
	return h.WriteFile(ctx, record, data, runner.Attr{Mode: i.Attr().Mode})
}

// putTheirs brings back what keepTheirs has kept; without that the file goes.
func (f File) putTheirs(ctx context.Context, h *steps.Host, existed bool, record string) error {
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

// restoreTheirs is restoreFile for a file of the login user.
func (f File) restoreTheirs(ctx context.Context, h *steps.Host) (*Change, error) {
	e, recorded, err := Recall(ctx, h, f)
	if err != nil || !recorded {
		return nil, err
	}
	what := "remove " + f.Path
	if e.Existed {
		what = "put back " + f.Path
	}
	return &Change{What: what, Apply: func(ctx context.Context, h *steps.Host) error {
		err := f.putTheirs(ctx, h, e.Existed, recordPath(h, f, suffixFirst))
		if errors.Is(err, fs.ErrNotExist) { // put back already, by a run that was cut off
			err = nil
		}
		if err != nil {
			return err
		}
		return Forget(ctx, h, f)
	}}, nil
}
