package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mensylisir/kubexm/steps/connector"
)

// Upload is a file to transfer to a host. Size and SHA256 come from the bundle's lock.
type Upload struct {
	Path   string
	Size   int64  // bytes
	SHA256 string // 64 hexadecimal digits
	Attr   Attr   // Mode 0 means 0755
	// Open returns the content from its start. It is not called for a file that the host
	// already has. Of a call to Uploads two may be open at a time. If the result is a Checker, its check is
	// disabled, because the host verifies the digest. If the host finds another digest,
	// the content is read again with the check, to find out which side is at fault.
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// Checker is content whose digest is verified while it is read.
type Checker interface {
	io.ReadCloser
	// Uncheck disables the verification. It must be called before the first Read.
	Uncheck()
}

// parallelUploads is the number of parallel groups of files to one host: the host hashes one
// while the next one is sent.
const parallelUploads = 2

// A group of files is sent by one command, until it has as many bytes or files: each command
// costs a round trip and some processes on the host, and a group is hashed when all of it is
// there.
const (
	groupBytes = 16 << 20
	groupFiles = 100
)

// compareBatch is the number of files that one command compares: the length of a command
// line is limited.
const compareBatch = 200

// Upload transfers one file to the host, unless the host already has it with the same
// content and attributes. changed reports whether it changed anything. The host verifies
// the digest before the file replaces an existing one: after a *DigestError the existing
// file is unchanged.
func (r *Runner) Upload(ctx context.Context, u Upload) (changed bool, err error) {
	done, err := r.Uploads(ctx, []Upload{u})
	return len(done) == 1, err
}

// Uploads transfers several files to the host, small ones many at a time. It returns the changed
// paths in the order of us, also if it fails. After an error it sends no further files and
// cancels the running transfers.
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
		all  = grouped(todo)
		next = make(chan []Pending)
	)
	for range min(parallelUploads, len(all)) {
		wg.Go(func() {
			for g := range next {
				if err := r.transfer(ctx, g); err != nil {
					stop(err)
					return
				}
				mu.Lock()
				for _, p := range g {
					done[p.Path] = true
				}
				mu.Unlock()
			}
		})
	}
feed:
	for _, g := range all {
		select {
		case next <- g:
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

// grouped splits files into groups that one command transfers: they are in one folder, with the
// same mode and owner.
func grouped(todo []Pending) (all [][]Pending) {
	var size int64
	for i, p := range todo {
		if i > 0 {
			g := all[len(all)-1]
			if alike(g[0], p) && size < groupBytes && len(g) < groupFiles {
				all[len(all)-1], size = append(g, p), size+p.Size
				continue
			}
		}
		all, size = append(all, []Pending{p}), p.Size
	}
	return all
}

func alike(a, b Pending) bool {
	return path.Dir(a.Path) == path.Dir(b.Path) && a.attr() == b.attr() && !a.OnlyAttr && !b.OnlyAttr
}

// Uploaded reports whether the host already has the file with the same content and
// attributes. It changes nothing.
func (r *Runner) Uploaded(ctx context.Context, u Upload) (bool, error) {
	todo, err := r.Pending(ctx, []Upload{u})
	return err == nil && len(todo) == 0, err
}

// Pending is a file that has to be transferred to a host.
type Pending struct {
	Upload
	// OnlyAttr means that the host has the content, with another mode or owner.
	OnlyAttr bool
}

// Pending returns the files of us that the host does not have with the same content and
// attributes. It changes nothing and runs one command per 200 files.
func (r *Runner) Pending(ctx context.Context, us []Upload) ([]Pending, error) {
	var todo []Pending
	for some := range slices.Chunk(us, compareBatch) {
		var args []string
		for _, u := range some {
			if err := checkPath(u.Path); err != nil {
				return nil, err
			}
			if len(u.SHA256) != 64 {
				return nil, fmt.Errorf("upload %s: %q is not a sha256", u.Path, u.SHA256)
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
			p, exists, err := compare(u, args[2*i+1], rs[i])
			if err != nil {
				return nil, err
			}
			if !exists {
				todo = append(todo, p)
			}
		}
	}
	return todo, nil
}

// compare reports whether the host has u, from a record of scriptCompare.
func compare(u Upload, known string, record []string) (p Pending, exists bool, err error) {
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
	unchanged := info.Target == same && strings.Contains(known, ":")
	if info.Target != u.SHA256 && !unchanged {
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

// transfer transfers a group of files to the host.
func (r *Runner) transfer(ctx context.Context, g []Pending) error {
	if g[0].OnlyAttr {
		return r.SetAttr(ctx, g[0].Path, g[0].attr())
	}
	err := r.put(ctx, g)
	if wrong := (*DigestError)(nil); errors.As(err, &wrong) {
		for _, p := range g {
			if p.Path == wrong.Path {
				return cmp.Or(p.check(ctx), err)
			}
		}
	}
	return err
}

// check reads the content of u with its verification enabled.
func (u Upload) check(ctx context.Context) error {
	body, err := u.Open(ctx)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, body)
	return errors.Join(err, body.Close())
}

// put sends a group of files. The host verifies their digests before it renames the first one.
func (r *Runner) put(ctx context.Context, g []Pending) error {
	dir := path.Dir(g[0].Path)
	mode, owner := g[0].attr().args(0o755)
	args := []string{dir, mode, owner}
	for _, p := range g {
		args = append(args, path.Base(p.Path), strconv.FormatInt(p.Size, 10), p.SHA256)
	}
	body := &contents{ctx: ctx, rest: g}
	defer body.Close()
	res, err := r.do(ctx, connector.Cmd{Verb: connector.VerbPut, Argv: shell(scriptPut, args...), Stdin: body, Verified: true, Sudo: true})
	out := strings.Split(string(res.Stdout), "\x00")
	switch {
	case exited(err, exitShort):
		return &fs.PathError{Op: "upload", Path: g[0].Path, Err: ErrShort}
	case exited(err, exitDigest):
		for _, p := range g {
			if path.Base(p.Path) == out[0] {
				return &DigestError{Path: p.Path, Want: p.SHA256}
			}
		}
		return err
	case err != nil:
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, p := range g {
		if 2*i+1 < len(out) && out[2*i+1] == path.Base(p.Path) {
			r.sealed[p.Path] = sealed{out[2*i], p.SHA256}
		}
	}
	return nil
}

var errLong = errors.New("the content is longer than announced")

// contents is the content of a group of files, each opened when the one before it was read. A
// command that ends early may leave a Read behind, so Close may be called beside it.
type contents struct {
	ctx  context.Context //nolint:containedctx // a reader has no argument for it
	rest []Pending
	left int64 // bytes of file

	mu     sync.Mutex
	file   io.ReadCloser
	closed bool
}

// Read implements io.Reader. It ends with a file of another size than announced: what follows it
// would be taken for its content.
func (c *contents) Read(b []byte) (int, error) {
	f, err := c.open()
	if err != nil {
		return 0, err
	}
	n, err := f.Read(b)
	c.left -= int64(n)
	switch {
	case c.left < 0:
		return 0, &fs.PathError{Op: "upload", Path: c.rest[0].Path, Err: errLong}
	case err != io.EOF:
		return n, err
	case c.left > 0: // the host sees the end, and removes what it has received
		if err := c.closeFile(true); err != nil {
			return n, err
		}
		return n, io.EOF
	}
	c.rest = c.rest[1:]
	return n, c.closeFile(false)
}

// open returns the file to read, or io.EOF after the last one.
func (c *contents) open() (io.ReadCloser, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, fs.ErrClosed
	case c.file != nil:
		return c.file, nil
	case len(c.rest) == 0:
		return nil, io.EOF
	}
	f, err := c.rest[0].Open(c.ctx)
	if err != nil {
		return nil, err
	}
	if u, ok := f.(Checker); ok {
		u.Uncheck()
	}
	c.file, c.left = f, c.rest[0].Size
	return f, nil
}

func (c *contents) closeFile(last bool) error {
	c.mu.Lock()
	f := c.file
	c.file, c.closed = nil, c.closed || last
	c.mu.Unlock()
	if f == nil {
		return nil
	}
	return f.Close()
}

// Close closes the file that is open. Later reads fail.
func (c *contents) Close() error { return c.closeFile(true) }

// sealed is a file whose digest this Runner verified on the host.
type sealed struct{ identity, sha256 string }

// same is the target in a record of scriptCompare for a file that has not changed since it
// was sealed.
const same = "="

// known returns the argument KNOWN of scriptCompare for u: the size, or the identity of the
// file if this Runner has sealed it. Without the identity, the check after a change would
// hash every file a second time.
func (r *Runner) known(u Upload) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := strconv.FormatInt(u.Size, 10)
	if s := r.sealed[u.Path]; s.sha256 == u.SHA256 && strings.HasPrefix(s.identity, size+":") {
		return s.identity
	}
	return size
}
