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

// Upload is a file to transfer to a host. Size and SHA256 come from the bundle's lock.
type Upload struct {
	Path   string
	Size   int64  // bytes
	SHA256 string // 64 hexadecimal digits
	Attr   Attr   // Mode 0 means 0755
	// Open returns the content from its start. It is not called for a file that the host
	// already has. Two may be open at a time. If the result is a Checker, its check is
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

// parallelUploads is the number of parallel uploads to one host: the host hashes one file
// while the next one is sent.
const parallelUploads = 2

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

// Uploads transfers several files to the host, two at a time. It returns the changed paths
// in the order of us, also if it fails. After an error it starts no further file and
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
		next = make(chan Pending)
	)
	for range min(parallelUploads, len(todo)) {
		wg.Go(func() {
			for p := range next {
				if err := r.transfer(ctx, p); err != nil {
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

// transfer transfers one file to the host.
func (r *Runner) transfer(ctx context.Context, p Pending) error {
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

// check reads the content of u with its verification enabled.
func (u Upload) check(ctx context.Context) error {
	body, err := u.Open(ctx)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, body)
	return errors.Join(err, body.Close())
}

// put sends the content to the temporary file on the host.
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

// seal verifies on the host what put has sent, and renames it to its final name.
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
