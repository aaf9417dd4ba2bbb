package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"

	"github.com/mensylisir/kubexm/steps/connector"
)

// Upload is one large file to be on a host. Size and SHA256 are known before: they
// come from the bundle's lock.
type Upload struct {
	Path   string
	Size   int64  // bytes
	SHA256 string // 64 hexadecimal digits
	Attr   Attr   // Mode 0 means 0755
	// Open gives the bytes, each time from the start. It is not called for a file
	// that the host has already.
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// Upload brings one file to the host, unless a file with these bytes and
// permissions is there already. It tells whether it changed anything. The bytes
// are hashed again on the host before they take their place: a *DigestError means
// that what was there still is.
func (r *Runner) Upload(ctx context.Context, u Upload) (changed bool, err error) {
	done, err := r.Uploads(ctx, []Upload{u})
	return len(done) == 1, err
}

// Uploads brings several files to the host, in order; while one is hashed there
// the next is on its way. It returns the paths that it changed, also with an error.
func (r *Runner) Uploads(ctx context.Context, us []Upload) (changed []string, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type sealed struct {
		path string
		err  error
	}
	var sealing chan sealed // nil: none is under way
	wait := func() error {
		if sealing == nil {
			return nil
		}
		s := <-sealing
		sealing = nil
		if s.err != nil {
			return s.err
		}
		changed = append(changed, s.path)
		return nil
	}
	for _, u := range us {
		what, err := r.compare(ctx, u)
		if err == nil && what == differs {
			err = r.put(ctx, u)
		}
		// The one before has to be done: errors come in order, and a host's disk
		// has two large files to write at most.
		if before := wait(); before != nil {
			return changed, errors.Join(before, err)
		}
		if err != nil {
			return changed, err
		}
		switch what {
		case same:
		case otherAttr:
			if err := r.SetAttr(ctx, u.Path, u.attr()); err != nil {
				return changed, err
			}
			changed = append(changed, u.Path)
		case differs:
			c := make(chan sealed, 1)
			sealing = c
			go func() { c <- sealed{u.Path, r.seal(ctx, u)} }()
		}
	}
	return changed, wait()
}

func (u Upload) attr() Attr {
	a := u.Attr
	if a.Mode == 0 {
		a.Mode = 0o755
	}
	return a
}

// Uploaded tells whether the host has the file already, bytes and permissions.
// It changes nothing.
func (r *Runner) Uploaded(ctx context.Context, u Upload) (bool, error) {
	c, err := r.compare(ctx, u)
	return c == same, err
}

type comparison int

const (
	differs comparison = iota
	otherAttr
	same
)

// compare looks at what is in u's place.
func (r *Runner) compare(ctx context.Context, u Upload) (comparison, error) {
	if len(u.SHA256) != 64 {
		return differs, fmt.Errorf("upload %s: %q is no sha256", u.Path, u.SHA256)
	}
	info, err := r.Stat(ctx, u.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return differs, nil
	case err != nil:
		return differs, err
	case info.IsDir():
		return differs, &fs.PathError{Op: "upload", Path: u.Path, Err: errors.New("is a folder")}
	case !info.IsRegular() || info.Size != u.Size: // hashing it would tell nothing more
		return differs, nil
	}
	sum, err := r.Digest(ctx, u.Path)
	switch {
	case err != nil || sum != u.SHA256:
		return differs, err
	case !info.Has(u.attr()):
		return otherAttr, nil
	}
	return same, nil
}

// put sends the bytes to the place beside.
func (r *Runner) put(ctx context.Context, u Upload) error {
	body, err := u.Open(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = r.script(ctx, connector.VerbPut, scriptPut, body, u.Path, strconv.FormatInt(u.Size, 10))
	if exited(err, exitShort) {
		return &fs.PathError{Op: "upload", Path: u.Path, Err: ErrShort}
	}
	return err
}

// seal checks on the host what put brought, and moves it to its place.
func (r *Runner) seal(ctx context.Context, u Upload) error {
	mode, owner := u.attr().args(0o755)
	_, err := r.script(ctx, connector.VerbSeal, scriptSeal, nil, u.Path, u.SHA256, mode, owner)
	switch {
	case exited(err, exitDigest):
		return &DigestError{Path: u.Path, Want: u.SHA256}
	case exited(err, exitAbsent):
		return absent("upload", u.Path)
	}
	return err
}
