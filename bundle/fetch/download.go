package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"

	"github.com/cavaliergopher/grab/v3"
)

// job is one file or blob to download.
type job struct {
	name    string // for messages
	address string // upstream's address
	target  string // the address to request
	sha256  string // expected, or "" if unknown
	size    int64  // expected, or -1
	most    int64  // maximum bytes to read if size is unknown; 0 is unlimited

	// open returns the HTTP client and the address to request; it may have to log in first.
	open func(context.Context) (doer, *url.URL, error)
}

// key is the name of the job's partial file.
func (j *job) key() string {
	if j.sha256 != "" {
		return j.sha256
	}
	return "address-" + hexOf(j.target)
}

func (j *job) sizeError(got int64) error {
	return &SizeError{Name: j.name, Address: j.address, Target: j.target, Want: j.size, Got: got}
}

// hexOf returns the sha256 of a string in hex.
func hexOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// download fetches j into a partial file, checks it, and passes it to finish, which stores
// or removes it. done is called first, with the lock on the file: another build may have
// fetched the same file in the meantime.
func (c *Client) download(ctx context.Context, j *job, done func() bool, finish func(*part) error) error {
	unlock, err := c.cache.lock(ctx, c.log, j.key())
	if err != nil {
		return err
	}
	defer unlock()
	if done() {
		return nil
	}
	t := c.options.Progress.Start(j.name, j.size)
	p := c.cache.part(j.key())
	err = c.complete(ctx, j, &download{client: c, job: j, part: p, transfer: t})
	if err == nil {
		err = finish(p)
	}
	t.Done(err)
	return err
}

// receiver receives the content of one job in any number of attempts.
type receiver interface {
	// attempt requests the missing part once.
	attempt(ctx context.Context) error
	received() int64 // bytes so far
	digest() string  // sha256 in hex of these bytes
	drop() error     // discards them
}

// complete retries until r has the complete content of j. Partial content that cannot be
// continued is discarded and downloaded again. Complete but wrong content is discarded once
// too, because damaged partial content or a faulty proxy may be the cause.
func (c *Client) complete(ctx context.Context, j *job, r receiver) error {
	restarted := false
	furthest := int64(0) // downloading the same bytes again is not progress
	return c.retry(ctx, j.name, func(ctx context.Context) (int64, error) {
		began := furthest
		for {
			err := r.attempt(ctx)
			furthest = max(furthest, r.received())
			progress := furthest - began
			if err == nil && j.sha256 != "" && r.digest() != j.sha256 {
				err = &DigestError{Name: j.name, Address: j.address, Target: j.target, Want: j.sha256, Got: r.digest()}
			}
			wrong := wrongContent(err)
			if !wrong && !errors.Is(err, errStale) {
				return progress, err
			}
			if derr := r.drop(); derr != nil {
				return progress, derr
			}
			if wrong && restarted {
				return progress, err
			}
			restarted = restarted || wrong
			c.log.InfoContext(ctx, "starting a download over", "name", j.name, "reason", err)
		}
	})
}

// wrongContent reports whether err means that the content is not the expected one.
func wrongContent(err error) bool {
	if _, ok := errors.AsType[*DigestError](err); ok {
		return true
	}
	_, ok := errors.AsType[*SizeError](err)
	return ok
}

// download receives a job into a partial file of the cache.
type download struct {
	client   *Client
	job      *job
	part     *part
	transfer Transfer
}

func (d *download) received() int64 { return d.part.have }

func (d *download) digest() string { return d.part.digest() }

func (d *download) drop() error { return d.part.drop(d.transfer) }

func (d *download) attempt(ctx context.Context) error {
	j, p, t := d.job, d.part, d.transfer
	client, address, err := j.open(ctx)
	if err != nil {
		return err
	}
	source := hexOf(address.String())
	if err := p.load(ctx, j, source, t); err != nil {
		return fmt.Errorf("continue download: %w", err)
	}
	req, err := grab.NewRequest(p.path, address.String())
	if err != nil {
		return err
	}
	req.Size = max(p.meta.total(j), 0) // grab uses 0 for unknown
	req.IgnoreRemoteTime = true
	req.NoCreateDirectories = true
	if v := p.meta.validator(); p.have > 0 && v != "" && p.meta.Source == source {
		req.HTTPRequest.Header.Set("If-Range", v)
	}
	x := &exchange{client: client, part: p, job: j, source: source, transfer: t}
	g := &grab.Client{HTTPClient: x, BufferSize: bufferSize}
	err = g.Do(req.WithContext(ctx)).Err()
	if errors.Is(err, grab.ErrBadLength) {
		err = errShort // a body without Content-Length ended early
	}
	return err
}
