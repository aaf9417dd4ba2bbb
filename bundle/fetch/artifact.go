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

// FetchArtifact fetches a into the cache: the file itself or, for an archive or a package
// repository, each of its entries. Cached content needs no network. Content that does not
// match its pin is a *DigestError or a *SizeError.
func (c *Client) FetchArtifact(ctx context.Context, a manifest.Artifact) error {
	if a.Kind == manifest.Packages {
		return c.fetchPackages(ctx, a)
	}
	if !isHexDigest(a.SHA256) {
		return errors.New("not pinned: it has no sha256")
	}
	for _, m := range a.Members {
		if !isHexDigest(m.SHA256) {
			return fmt.Errorf("not pinned: entry %s has no sha256", m.Path)
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

// fetchFile fetches one pinned file into the cache; a chart's archive is a file too.
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

// PinArtifact sets the missing fields of a: its size, its digest with its origin (Trust),
// and the sizes and digests of its entries. An existing digest is preserved. A missing one
// is read from DigestAddress or, without that, computed from the download. Files with a
// known digest are not downloaded.
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
		return a, fmt.Errorf("%q is not a sha256 in lower-case hex", a.SHA256)
	}
	if a.Archive != "" {
		return c.pinArchive(ctx, a)
	}
	return c.pinFile(ctx, a)
}

// pinFile sets a file's size and, if it is missing, its digest.
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
		// The server does not state the size: download the file.
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

// ReadArtifact fetches a pinned file or chart into the cache and returns its content.
func (c *Client) ReadArtifact(ctx context.Context, a manifest.Artifact) ([]byte, error) {
	if err := c.FetchArtifact(ctx, a); err != nil {
		return nil, err
	}
	if a.Size > localBytes {
		return nil, fmt.Errorf("%s has %d bytes, too many to read", a.ID, a.Size)
	}
	return c.cache.read(a.SHA256, a.Size)
}

// fileJob returns the download of a's file, of size bytes or -1.
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

// clientFor returns the client for a's file at u. Charts may need a login.
func (c *Client) clientFor(ctx context.Context, a manifest.Artifact, u *url.URL) (*http.Client, error) {
	if a.Kind == manifest.Chart {
		return c.loggedIn(ctx, u)
	}
	return c.http, nil
}

// fileAddress returns the address to request instead of upstream's.
func (c *Client) fileAddress(address string) (shown string, u *url.URL, plain bool, err error) {
	target, plain := c.options.Sources.Rewrite(address)
	u, err = url.Parse(target)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return "", nil, false, fmt.Errorf("%q is not an http address of a file", target)
	}
	if u.Scheme == "http" && !plain {
		return "", nil, false, &PlainHTTPError{Address: display(u)}
	}
	return display(u), u, plain, nil
}

// plainDoer sends requests and allows plain http if plain is set.
type plainDoer struct {
	client *http.Client
	plain  bool
}

// Do sends one request.
func (d plainDoer) Do(req *http.Request) (*http.Response, error) {
	return d.client.Do(req.WithContext(allowPlainHTTP(req.Context(), d.plain)))
}

// fileSize returns the size of a's file, from the cache or the server; -1 if the server
// does not state it.
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
		size, err = requestSize(ctx, client, u)
		return 0, err
	})
	if err != nil {
		return 0, err
	}
	return size, nil
}

// requestSize requests the size by HEAD. If the server rejects that, it requests the first byte
// by GET: an address that is signed for GET cannot be used for HEAD.
func requestSize(ctx context.Context, client *http.Client, u *url.URL) (int64, error) {
	head, err := http.NewRequestWithContext(ctx, http.MethodHead, u.String(), nil)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(head)
	if err != nil {
		return 0, err
	}
	_ = resp.Body.Close()                                           // a HEAD response has no body
	if resp.StatusCode == http.StatusOK && resp.ContentLength > 0 { // some servers state 0 for every HEAD
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

// baseName returns the name of the file at address in a digest file.
func baseName(address string) string {
	if u, err := url.Parse(address); err == nil {
		return path.Base(u.Path)
	}
	return path.Base(address)
}
