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
	name    string // for people
	address string // upstream's own
	target  string // the one to ask
	sha256  string // expected, or "" if nobody knows
	size    int64  // expected, or -1
	most    int64  // bytes that are read of it where size is not known; 0 is no bound

	// open gives the client to ask and the address in its terms; it may have to
	// log in first.
	open func(context.Context) (doer, *url.URL, error)
}

// key names the job's partial file.
func (j *job) key() string {
	if j.sha256 != "" {
		return j.sha256
	}
	return "address-" + hexOf(j.target)
}

func (j *job) sizeError(got int64) error {
	return &SizeError{Name: j.name, Address: j.address, Target: j.target, Want: j.size, Got: got}
}

// hexOf is the sha256 of a string.
func hexOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// download brings j's bytes into a partial file, checks them, and hands the file
// to finish, which keeps or removes it. done is asked first, by whoever has the
// turn: another build may have brought the same meanwhile.
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
	err = c.complete(ctx, j, p, t)
	if err == nil {
		err = finish(p)
	}
	t.Done(err)
	return err
}

// complete tries until p is the whole of what j asks for. What came is thrown
// away and asked for again at once when it cannot be continued, and once more
// when it is wrong in the end: that may be a broken partial file's doing, or a
// broken proxy's.
func (c *Client) complete(ctx context.Context, j *job, p *part, t Transfer) error {
	restarted := false
	furthest := int64(0) // bytes from an earlier start are no progress
	return c.retry(ctx, j.name, func(ctx context.Context) (int64, error) {
		began := furthest
		for {
			err := c.attempt(ctx, j, p, t)
			furthest = max(furthest, p.have)
			brought := furthest - began
			if err == nil && j.sha256 != "" && p.digest() != j.sha256 {
				err = &DigestError{Name: j.name, Address: j.address, Target: j.target, Want: j.sha256, Got: p.digest()}
			}
			wrong := wrongContent(err)
			if !wrong && !errors.Is(err, errStale) {
				return brought, err
			}
			if derr := p.drop(t); derr != nil {
				return brought, derr
			}
			if wrong && restarted {
				return brought, err
			}
			restarted = restarted || wrong
			c.log.InfoContext(ctx, "starting a download over", "name", j.name, "reason", err)
		}
	})
}

// wrongContent tells whether err says that the bytes are not those expected.
func wrongContent(err error) bool {
	if _, ok := errors.AsType[*DigestError](err); ok {
		return true
	}
	_, ok := errors.AsType[*SizeError](err)
	return ok
}

// attempt asks once for what p lacks.
func (c *Client) attempt(ctx context.Context, j *job, p *part, t Transfer) error {
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
	req.Size = max(p.total(j), 0) // grab's word for unknown is 0
	req.IgnoreRemoteTime = true
	req.NoCreateDirectories = true
	if v := p.validator(); p.have > 0 && v != "" && p.meta.Source == source {
		req.HTTPRequest.Header.Set("If-Range", v)
	}
	x := &exchange{client: client, part: p, job: j, source: source, transfer: t}
	g := &grab.Client{HTTPClient: x, BufferSize: bufferSize}
	err = g.Do(req.WithContext(ctx)).Err()
	if errors.Is(err, grab.ErrBadLength) {
		err = errShort // a body without a length of its own ended early
	}
	return err
}
