package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"

	"github.com/mensylisir/kubexm/manifest"
)

// FetchArtifact brings what a's pin says into the cache: the file itself, or,
// where a is an archive or a repository of packages, each of its members. What
// the cache has already needs no network. Content that is not what the pin says gives a *DigestError or a
// *SizeError.
func (c *Client) FetchArtifact(ctx context.Context, a manifest.Artifact) error {
	if a.Kind == manifest.Packages {
		return c.fetchPackages(ctx, a)
	}
	if !isHexDigest(a.SHA256) {
		return errors.New("not pinned: it has no sha256")
	}
	for _, m := range a.Members {
		if !isHexDigest(m.SHA256) {
			return fmt.Errorf("not pinned: member %s has no sha256", m.Path)
		}
	}
	switch {
	case a.Kind == manifest.Chart:
		return c.fetchChart(ctx, a)
	case a.Archive != "":
		return c.fetchArchive(ctx, a)
	case a.Local():
		return c.fetchLocal(ctx, a)
	}
	return c.fetchFile(ctx, a)
}

// fetchFile brings one pinned file into the cache; a chart's archive is one too.
func (c *Client) fetchFile(ctx context.Context, a manifest.Artifact) error {
	done := func() bool { return c.cache.Has(a.SHA256, a.Size) }
	if done() {
		return nil
	}
	j, err := c.fileJob(a, a.Size)
	if err != nil {
		return err
	}
	return c.download(ctx, j, done, (*part).keep)
}

// PinArtifact fills in what a lacks: its size, its digest with who vouches for
// it, and the sizes and digests of its members. A digest that a has is kept; one
// it lacks is read from its DigestAddress, or, where there is none, taken from
// what is downloaded. Files whose digest is known are not downloaded.
func (c *Client) PinArtifact(ctx context.Context, a manifest.Artifact) (manifest.Artifact, error) {
	switch {
	case a.Kind == manifest.Packages:
		return c.pinPackages(ctx, a)
	case a.Kind == manifest.Chart:
		return c.pinChart(ctx, a)
	case a.Local():
		return Local(c.options.Base, a)
	}
	if a.SHA256 == "" && a.DigestAddress != "" {
		sum, err := c.publishedDigest(ctx, a)
		if err != nil {
			return a, err
		}
		a.SHA256, a.Trust = sum, manifest.FromPublished
	}
	if a.SHA256 != "" && !isHexDigest(a.SHA256) {
		return a, fmt.Errorf("%q is no sha256 in lower-case hex", a.SHA256)
	}
	if a.Archive != "" {
		return c.pinArchive(ctx, a)
	}
	return c.pinFile(ctx, a)
}

// pinFile fills in a file's size and, where it has none, its digest.
func (c *Client) pinFile(ctx context.Context, a manifest.Artifact) (manifest.Artifact, error) {
	if a.SHA256 != "" {
		size, err := c.fileSize(ctx, a)
		if err != nil {
			return a, err
		}
		if size >= 0 {
			a.Size = size
			return a, nil
		}
		// No server says the size: the download does.
	}
	j, err := c.fileJob(a, -1)
	if err != nil {
		return a, err
	}
	err = c.download(ctx, j, func() bool { return false }, func(p *part) error {
		a.Size = p.have
		if a.SHA256 == "" {
			a.SHA256, a.Trust = p.digest(), manifest.FromContent
		}
		return p.keep()
	})
	return a, err
}

// ReadArtifact brings a pinned file or chart into the cache and reads it.
func (c *Client) ReadArtifact(ctx context.Context, a manifest.Artifact) ([]byte, error) {
	if err := c.FetchArtifact(ctx, a); err != nil {
		return nil, err
	}
	if a.Size > localBytes {
		return nil, fmt.Errorf("%s has %d bytes, too many to look into", a.ID, a.Size)
	}
	return c.cache.read(a.SHA256, a.Size)
}

// fileJob is the download of a's file, of size bytes or -1.
func (c *Client) fileJob(a manifest.Artifact, size int64) (*job, error) {
	target, u, plain, err := c.fileAddress(a.Address)
	if err != nil {
		return nil, err
	}
	return &job{
		name: a.ID, address: a.Address, target: target, sha256: a.SHA256, size: size,
		open: func(ctx context.Context) (doer, *url.URL, error) {
			client, err := c.clientFor(ctx, a, u)
			return plainDoer{client, plain}, u, err
		},
	}, nil
}

// clientFor gives the client that asks for a's file at u: who asks for a chart may
// have to log in.
func (c *Client) clientFor(ctx context.Context, a manifest.Artifact, u *url.URL) (*http.Client, error) {
	if a.Kind == manifest.Chart {
		return c.loggedIn(ctx, u)
	}
	return c.http, nil
}

// fileAddress gives the address to ask in place of upstream's.
func (c *Client) fileAddress(address string) (shown string, u *url.URL, plain bool, err error) {
	target, plain := c.options.Sources.Rewrite(address)
	u, err = url.Parse(target)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return "", nil, false, fmt.Errorf("%q is no http address of a file", target)
	}
	if u.Scheme == "http" && !plain {
		return "", nil, false, &PlainHTTPError{Address: display(u)}
	}
	return display(u), u, plain, nil
}

// plainDoer sends requests with or without leave for plain http.
type plainDoer struct {
	client *http.Client
	plain  bool
}

// Do sends one request.
func (d plainDoer) Do(req *http.Request) (*http.Response, error) {
	return d.client.Do(req.WithContext(allowPlainHTTP(req.Context(), d.plain)))
}

// fileSize asks how long a's file is; -1 if no server says so. The cache knows
// it where it holds the file.
func (c *Client) fileSize(ctx context.Context, a manifest.Artifact) (int64, error) {
	if n, ok := c.cache.size(a.SHA256); ok {
		return n, nil
	}
	_, u, plain, err := c.fileAddress(a.Address)
	if err != nil {
		return 0, err
	}
	client, err := c.clientFor(ctx, a, u)
	if err != nil {
		return 0, err
	}
	size := int64(-1)
	err = c.retry(allowPlainHTTP(ctx, plain), a.ID, func(ctx context.Context) (int64, error) {
		var err error
		size, err = askSize(ctx, client, u)
		return 0, err
	})
	if err != nil {
		return 0, err
	}
	return size, nil
}

// askSize asks by HEAD, and by a GET of the first byte where a server refuses
// that: an address signed for GET is refused to HEAD.
func askSize(ctx context.Context, client *http.Client, u *url.URL) (int64, error) {
	head, err := http.NewRequestWithContext(ctx, http.MethodHead, u.String(), nil)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(head)
	if err != nil {
		return 0, err
	}
	_ = resp.Body.Close()                                           // a HEAD has none
	if resp.StatusCode == http.StatusOK && resp.ContentLength > 0 { // some say 0 to every HEAD
		return resp.ContentLength, nil
	}
	get, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return 0, err
	}
	get.Header.Set("Range", "bytes=0-0")
	resp, err = client.Do(get)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return resp.ContentLength, nil
	case http.StatusRequestedRangeNotSatisfiable: // an empty file has no first byte
		return -1, nil
	case http.StatusPartialContent:
		_, _, total, err := contentRange(resp.Header.Get("Content-Range"))
		return total, err
	}
	return 0, statusError(resp)
}

// baseName is the name that a digest file has for the file at address.
func baseName(address string) string {
	if u, err := url.Parse(address); err == nil {
		return path.Base(u.Path)
	}
	return path.Base(address)
}
