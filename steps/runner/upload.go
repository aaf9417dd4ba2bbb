package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"

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
	// that the host has already. Two may be open at a time. A Checker is asked not to
	// check, since the host does; where the host finds other bytes, all of it is read
	// once more with its check, so that whoever is at fault is told.
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// Checker is content that is checked as it is read, unless it is told not to.
type Checker interface {
	io.ReadCloser
	// Uncheck is called before the first Read, by whoever checks the bytes himself.
	Uncheck()
}

// side is how many files are on their way to one host at a time: while one is
// hashed there the other is sent.
const side = 2

// compareAtOnce is how many files one command compares: arguments have a limit.
const compareAtOnce = 200

// Upload brings one file to the host, unless a file with these bytes and
// permissions is there already. It tells whether it changed anything. The bytes
// are hashed again on the host before they take their place: a *DigestError means
// that what was there still is.
func (r *Runner) Upload(ctx context.Context, u Upload) (changed bool, err error) {
	done, err := r.Uploads(ctx, []Upload{u})
	return len(done) == 1, err
}

// Uploads brings several files to the host, two at a time. It returns the paths
// that it changed, in the order of us, also with an error: then no further file is
// begun, and those under way are given up.
func (r *Runner) Uploads(ctx context.Context, us []Upload) (changed []string, err error) {
	todo, err := r.Pending(ctx, us)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		done = map[string]bool{}
		next = make(chan Pending)
	)
	for range min(side, len(todo)) {
		wg.Go(func() {
			for p := range next {
				if err := r.bring(ctx, p); err != nil {
					stop(err)
					return
				}
				mu.Lock()
				done[p.Path] = true
				mu.Unlock()
			}
		})
	}
feed:
	for _, p := range todo {
		select {
		case next <- p:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	wg.Wait()
	for _, p := range todo {
		if done[p.Path] {
			changed = append(changed, p.Path)
		}
	}
	return changed, context.Cause(ctx)
}

// Uploaded tells whether the host has one file already, bytes and permissions.
// It changes nothing.
func (r *Runner) Uploaded(ctx context.Context, u Upload) (bool, error) {
	todo, err := r.Pending(ctx, []Upload{u})
	return err == nil && len(todo) == 0, err
}

// Pending is a file that a host lacks.
type Pending struct {
	Upload
	// OnlyAttr says that its bytes are there, with other permissions.
	OnlyAttr bool
}

// Pending gives those of us that the host does not have already, bytes and
// permissions. It changes nothing, and is one command for all.
func (r *Runner) Pending(ctx context.Context, us []Upload) ([]Pending, error) {
	var todo []Pending
	for some := range slices.Chunk(us, compareAtOnce) {
		var args []string
		for _, u := range some {
			if err := checkPath(u.Path); err != nil {
				return nil, err
			}
			if len(u.SHA256) != 64 {
				return nil, fmt.Errorf("upload %s: %q is no sha256", u.Path, u.SHA256)
			}
			args = append(args, u.Path, r.known(u))
		}
		res, err := r.script(ctx, connector.VerbCompare, scriptCompare, nil, args...)
		if err != nil {
			return nil, err
		}
		rs, err := records(res.Stdout)
		if err != nil || len(rs) != len(some) {
			return nil, fmt.Errorf("compare %d files: %d records: %w", len(some), len(rs), err)
		}
		for i, u := range some {
			p, there, err := compare(u, args[2*i+1], rs[i])
			if err != nil {
				return nil, err
			}
			if !there {
				todo = append(todo, p)
			}
		}
	}
	return todo, nil
}

// compare tells by what the host said whether it has u.
func compare(u Upload, known string, record []string) (p Pending, there bool, err error) {
	p.Upload = u
	if record[0] == "" {
		return p, false, nil
	}
	info, err := parseInfo(record)
	switch {
	case err != nil:
		return p, false, fmt.Errorf("compare %s: %w", u.Path, err)
	case info.IsDir():
		return p, false, &fs.PathError{Op: "upload", Path: u.Path, Err: errors.New("is a folder")}
	}
	again := info.Target == same && strings.Contains(known, ":")
	if info.Target != u.SHA256 && !again {
		return p, false, nil
	}
	p.OnlyAttr = !info.Has(u.attr())
	return p, !p.OnlyAttr, nil
}

func (u Upload) attr() Attr {
	a := u.Attr
	if a.Mode == 0 {
		a.Mode = 0o755
	}
	return a
}

// bring gets one file to the host.
func (r *Runner) bring(ctx context.Context, p Pending) error {
	if p.OnlyAttr {
		return r.SetAttr(ctx, p.Path, p.attr())
	}
	if err := r.put(ctx, p.Upload); err != nil {
		return err
	}
	err := r.seal(ctx, p.Upload)
	if wrong := (*DigestError)(nil); errors.As(err, &wrong) {
		return cmp.Or(p.check(ctx), err)
	}
	return err
}

// check reads u where it comes from, with its check.
func (u Upload) check(ctx context.Context) error {
	body, err := u.Open(ctx)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, body)
	return errors.Join(err, body.Close())
}

// put sends the bytes to the place beside.
func (r *Runner) put(ctx context.Context, u Upload) error {
	body, err := u.Open(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	if c, ok := body.(Checker); ok {
		c.Uncheck()
	}
	_, err = r.do(ctx, connector.Cmd{
		Verb: connector.VerbPut, Argv: shell(scriptPut, u.Path, strconv.FormatInt(u.Size, 10)), Stdin: body, SHA256: u.SHA256, Sudo: true,
	})
	if exited(err, exitShort) {
		return &fs.PathError{Op: "upload", Path: u.Path, Err: ErrShort}
	}
	return err
}

// sealed is a file that this Runner hashed on the host when it took its place.
type sealed struct{ identity, sha256 string }

// same is in a host's record of a file that is still the one that was sealed.
const same = "="

// known is what the host is told of u before it compares: the size; and where the
// very bytes were hashed there in this run, by what to know the file again. A look
// after a change would hash every file a second time otherwise.
func (r *Runner) known(u Upload) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := strconv.FormatInt(u.Size, 10)
	if s := r.sealed[u.Path]; s.sha256 == u.SHA256 && strings.HasPrefix(s.identity, size+":") {
		return s.identity
	}
	return size
}

// seal checks on the host what put brought, and moves it to its place.
func (r *Runner) seal(ctx context.Context, u Upload) error {
	mode, owner := u.attr().args(0o755)
	res, err := r.script(ctx, connector.VerbSeal, scriptSeal, nil, u.Path, u.SHA256, mode, owner)
	switch {
	case exited(err, exitDigest):
		return &DigestError{Path: u.Path, Want: u.SHA256}
	case exited(err, exitAbsent):
		return absent("upload", u.Path)
	}
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.sealed[u.Path] = sealed{strings.TrimSpace(string(res.Stdout)), u.SHA256}
	}
	return err
}
