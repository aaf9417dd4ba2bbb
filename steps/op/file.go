package op

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// File is a small file whose content is computed on the workdir host.
type File struct {
	NoNeeds
	Path   string
	Attr   runner.Attr // Mode 0 means 0644
	Secret bool        // its content is never shown, not even in a diff
	Login  bool        // it belongs to the login user: that user writes it, not root
	Body   func(context.Context, *steps.Host) ([]byte, error)
}

// Text returns a File with mode 0644.
func Text(path string, body func(context.Context, *steps.Host) ([]byte, error)) File {
	return File{Path: path, Body: body}
}

func (f File) String() string { return "file " + f.Path }

// Want writes the file if content, mode or owner differ.
func (f File) Want(ctx context.Context, h *steps.Host, _ bool) (*Change, error) {
	want, err := f.Body(ctx, h)
	if err != nil {
		return nil, err
	}
	by := as(h, f.Login)
	i, existed, err := statBy(ctx, h, by, f.Path)
	if err != nil {
		return nil, err
	}
	var have []byte
	if existed && i.IsRegular() {
		if have, err = by.ReadFile(ctx, f.Path); err != nil {
			return nil, err
		}
		if string(have) == string(want) && i.Has(f.Attr) {
			return nil, nil
		}
	}
	if by != h.Runner {
		return f.replaceAsLogin(i, existed, want), nil
	}
	c := replaceFile(f, f.Path, existed, func(ctx context.Context, h *steps.Host) error {
		return h.WriteFile(ctx, f.Path, want, f.Attr)
	})
	if !f.Secret {
		c.Diff = lineDiff(string(have), string(want))
	}
	return c, nil
}

// Gone removes the file, or restores the original one.
func (f File) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	if as(h, f.Login) != h.Runner {
		return f.restoreAsLogin(ctx, h)
	}
	return restoreFile(ctx, h, f, f.Path)
}

// Blob is a file from the bundle.
type Blob struct {
	Path string
	Need manifest.Need
	Attr runner.Attr // Mode 0 means 0755
}

func (b Blob) String() string { return "file " + b.Path }

// Needs returns Need.
func (b Blob) Needs() []manifest.Need { return []manifest.Need{b.Need} }

func (b Blob) upload(_ context.Context, h *steps.Host) (runner.Upload, error) {
	blob, err := h.Lookup(b.Need)
	if err != nil {
		return runner.Upload{}, err
	}
	return runner.Upload{Path: b.Path, Size: blob.Size, SHA256: blob.SHA256, Attr: b.Attr,
		Open: func(ctx context.Context) (io.ReadCloser, error) {
			rc, _, err := h.Artifact(ctx, b.Need)
			return rc, err
		}}, nil
}

// Want uploads the file if its sha256 differs from the lock's, or its mode or owner from
// Attr.
func (b Blob) Want(ctx context.Context, h *steps.Host, _ bool) (*Change, error) {
	u, err := b.upload(ctx, h)
	if err != nil {
		return nil, err
	}
	if lacks, err := h.Pending(ctx, []runner.Upload{u}); len(lacks) == 0 || err != nil {
		return nil, err
	}
	_, existed, err := stat(ctx, h, b.Path)
	if err != nil {
		return nil, err
	}
	return replaceFile(b, b.Path, existed, func(ctx context.Context, h *steps.Host) error {
		_, err := h.Upload(ctx, u)
		return err
	}), nil
}

// Gone removes the file, or restores the original one.
func (b Blob) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	return restoreFile(ctx, h, b, b.Path)
}

// stat returns what exists at path. A folder is an error.
func stat(ctx context.Context, h *steps.Host, path string) (i runner.Info, existed bool, err error) {
	return statBy(ctx, h, h.Runner, path)
}

func statBy(ctx context.Context, h *steps.Host, by *runner.Runner, path string) (i runner.Info, existed bool, err error) {
	i, err = by.Stat(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return i, false, nil
	}
	if err == nil && i.IsDir() {
		err = steps.Advise(&fs.PathError{Op: "write", Path: path, Err: errors.New("is a folder")}, "move %s on %s out of the way", path, h.Name)
	}
	return i, err == nil, err
}

// replaceFile returns the change that writes a file at path. The original file is saved
// with the record. A file that an earlier run of kubexm wrote is saved as well, so that
// Undo can restore it.
func replaceFile(r Resource, path string, existed bool, write Fn) *Change {
	var first, wrote bool // how far Apply got: it wrote the first record, it began to write the file
	return &Change{
		What: "write " + path,
		Apply: func(ctx context.Context, h *steps.Host) error {
			_, recorded, err := ReadRecord(ctx, h, r)
			if err != nil {
				return err
			}
			first = !recorded
			if err := save(ctx, h, r, path, existed, first); err != nil {
				return err
			}
			wrote = true
			return write(ctx, h)
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if wrote {
				if err := unwrite(ctx, h, r, path, existed, first); err != nil {
					return err
				}
			}
			if !first {
				return h.Remove(ctx, recordPath(h, r, suffixLast))
			}
			return Forget(ctx, h, r)
		},
	}
}

// save saves the file at path. Before the first change it goes into the record of r:
// its entry is written last, because only the entry makes a record valid. Later copies
// serve Undo only.
func save(ctx context.Context, h *steps.Host, r Resource, path string, existed, first bool) error {
	if !first {
		if !existed {
			return nil
		}
		return h.Copy(ctx, path, recordPath(h, r, suffixLast))
	}
	if err := makeRecordDir(ctx, h); err != nil {
		return err
	}
	if existed {
		if err := h.Copy(ctx, path, recordPath(h, r, suffixFirst)); err != nil {
			return err
		}
	}
	return Rewrite(ctx, h, r, Record{Existed: existed})
}

// unwrite restores the file that save saved.
func unwrite(ctx context.Context, h *steps.Host, r Resource, path string, existed, first bool) error {
	if !existed {
		return h.Remove(ctx, runner.Partial(path), path)
	}
	if err := h.Discard(ctx, path); err != nil {
		return err
	}
	switch {
	case first:
		return h.Copy(ctx, recordPath(h, r, suffixFirst), path)
	}
	return h.Copy(ctx, recordPath(h, r, suffixLast), path)
}

// restoreFile returns the change that removes a file of kubexm's, or restores the
// original one.
func restoreFile(ctx context.Context, h *steps.Host, r Resource, path string) (*Change, error) {
	e, recorded, err := ReadRecord(ctx, h, r)
	if err != nil || !recorded {
		return nil, err
	}
	what := "remove " + path
	if e.Existed {
		what = "restore " + path
	}
	return &Change{What: what, Apply: func(ctx context.Context, h *steps.Host) error {
		if !e.Existed {
			if err := h.Remove(ctx, runner.Partial(path), path); err != nil {
				return err
			}
			return Forget(ctx, h, r)
		}
		if err := h.Discard(ctx, path); err != nil {
			return err
		}
		err := h.Copy(ctx, recordPath(h, r, suffixFirst), path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // if absent, an interrupted run has already restored it
			return err
		}
		return Forget(ctx, h, r)
	}}, nil
}

// Digest returns the sha256 of b in hexadecimal, for content that has to change whenever
// b does.
func Digest(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}
