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

// File is a small file with a content that is worked out on the machine kubexm
// runs on.
type File struct {
	noNeeds
	Path   string
	Attr   runner.Attr // Mode 0 means 0644
	Secret bool        // its content is never shown, in a diff either
	Body   func(context.Context, *steps.Host) ([]byte, error)
}

// Text is a File that anyone may read.
func Text(path string, body func(context.Context, *steps.Host) ([]byte, error)) File {
	return File{Path: path, Body: body}
}

func (f File) String() string { return "file " + f.Path }

// Want compares content, mode and owner.
func (f File) Want(ctx context.Context, h *steps.Host, _ bool) (*Change, error) {
	want, err := f.Body(ctx, h)
	if err != nil {
		return nil, err
	}
	have, err := h.ReadFile(ctx, f.Path)
	existed := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if existed && string(have) == string(want) {
		same, err := sameAttr(ctx, h, f.Path, f.Attr, 0o644)
		if err != nil || same {
			return nil, err
		}
	}
	c := replaceFile(f, f.Path, existed, func(ctx context.Context, h *steps.Host) error {
		return h.WriteFile(ctx, f.Path, want, f.Attr)
	})
	if !f.Secret {
		c.Diff = lineDiff(string(have), string(want))
	}
	return c, nil
}

// Gone removes the file, or puts back the one that was there before.
func (f File) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	return restoreFile(ctx, h, f, f.Path)
}

// Blob is a file of the bundle on a host.
type Blob struct {
	Path string
	Need manifest.Need
	Attr runner.Attr // Mode 0 means 0755
}

func (b Blob) String() string { return "file " + b.Path }

// Needs is the one file.
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

// Want compares the file's sha256 with the lock's.
func (b Blob) Want(ctx context.Context, h *steps.Host, _ bool) (*Change, error) {
	u, err := b.upload(ctx, h)
	if err != nil {
		return nil, err
	}
	if done, err := h.Uploaded(ctx, u); done || err != nil {
		return nil, err
	}
	_, err = h.Stat(ctx, b.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return replaceFile(b, b.Path, err == nil, func(ctx context.Context, h *steps.Host) error {
		_, err := h.Upload(ctx, u)
		return err
	}), nil
}

// Gone removes the file, or puts back the one that was there before.
func (b Blob) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	return restoreFile(ctx, h, b, b.Path)
}

// replaceFile makes the change that puts a file at path. What was there at the
// very first is kept under the record; what was there just now, beside it, so
// that Undo can put it back.
func replaceFile(r Resource, path string, existed bool, write Fn) *Change {
	return &Change{
		What: "write " + path,
		Apply: func(ctx context.Context, h *steps.Host) error {
			_, recorded, err := recall(ctx, h, r)
			if err != nil {
				return err
			}
			if !recorded {
				if _, err := h.Mkdir(ctx, RecordDir(h), runner.Attr{Mode: 0o700}); err != nil {
					return err
				}
				if existed {
					if err := h.Copy(ctx, path, recordPath(h, r, ".data")); err != nil {
						return err
					}
				}
				if err := remember(ctx, h, r, entry{Existed: existed}); err != nil {
					return err
				}
			}
			if existed {
				if err := h.Copy(ctx, path, recordPath(h, r, ".last")); err != nil {
					return err
				}
			}
			return write(ctx, h)
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if existed {
				err := h.Copy(ctx, recordPath(h, r, ".last"), path)
				if errors.Is(err, fs.ErrNotExist) {
					return nil // nothing was written yet
				}
				return err
			}
			return errors.Join(h.Remove(ctx, path), forget(ctx, h, r))
		},
	}
}

// restoreFile makes the change that takes a file of ours away.
func restoreFile(ctx context.Context, h *steps.Host, r Resource, path string) (*Change, error) {
	e, recorded, err := recall(ctx, h, r)
	if err != nil {
		return nil, err
	}
	_, err = h.Stat(ctx, path)
	here := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	switch {
	case recorded && e.Existed:
		return &Change{What: "put back " + path, Apply: func(ctx context.Context, h *steps.Host) error {
			err := h.Rename(ctx, recordPath(h, r, ".data"), path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // put back already, by a run that was cut off
				return err
			}
			return forget(ctx, h, r)
		}}, nil
	case here || recorded:
		return &Change{What: "remove " + path, Apply: func(ctx context.Context, h *steps.Host) error {
			return errors.Join(h.Remove(ctx, path), forget(ctx, h, r))
		}}, nil
	}
	return nil, nil
}

// sameAttr compares mode and owner with what is wanted.
func sameAttr(ctx context.Context, h *steps.Host, path string, a runner.Attr, otherwise fs.FileMode) (bool, error) {
	i, err := h.Stat(ctx, path)
	if err != nil {
		return false, err
	}
	mode := a.Mode
	if mode == 0 {
		mode = otherwise
	}
	return i.Mode.Perm() == mode.Perm() && (a.Owner == "" || a.Owner == i.Owner) && (a.Group == "" || a.Group == i.Group), nil
}

// Digest of a body, for what has to change when a file changes.
func Digest(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}
