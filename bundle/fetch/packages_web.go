package fetch

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
)

// packageWeb opens the files of package repositories through the client's sources. For
// files that an earlier run read, it only asks whether they have changed.
type packageWeb struct {
	client *Client

	mu    sync.Mutex
	plain []string // hosts that were read without TLS without permission in the sources
}

// absentError is a response that the file does not exist.
type absentError struct{ error }

// Is reports that this error is fs.ErrNotExist.
func (e absentError) Is(target error) bool { return target == fs.ErrNotExist }

// Unwrap returns the error of the response.
func (e absentError) Unwrap() error { return e.error }

// Open implements packaging.Web.
func (w *packageWeb) Open(ctx context.Context, address string) (io.ReadCloser, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("not a valid address") // the error of net/url quotes the address, which may contain a password
	}
	if u.Scheme == "file" {
		return openFile(u)
	}
	to, err := w.client.rewrite(u)
	if err != nil {
		return nil, err
	}
	w.note(u, to)
	if digest := namedDigest(u); w.client.cache.intact(ctx, digest) {
		return w.client.cache.Open(digest)
	}
	digest, err := w.client.metadata(ctx, u, to)
	if status, ok := errors.AsType[*StatusError](err); ok && status.absent() {
		return nil, absentError{err}
	}
	if err != nil {
		return nil, err
	}
	return w.client.cache.Open(digest)
}

// note records a host that is read over plain http without permission in the sources.
func (w *packageWeb) note(u, to *url.URL) {
	if _, allowed := w.client.options.Sources.Rewrite(withoutLogin(u).String()); allowed || to.Scheme != "http" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.plain, to.Host) {
		w.plain = append(w.plain, to.Host)
	}
}

// plainHosts returns the hosts recorded by note, sorted.
func (w *packageWeb) plainHosts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(slices.Values(w.plain))
}

// namedDigest returns the sha256 in a file's name, or "": by-hash/SHA256/… of apt,
// repodata/…-primary.xml.gz of rpm. Such content never changes, and its reader compares it
// with the digest in the repository's index.
func namedDigest(u *url.URL) string {
	name := path.Base(u.Path)
	if path.Base(path.Dir(u.Path)) == "repodata" {
		name, _, _ = strings.Cut(name, "-")
	}
	if !isHexDigest(name) {
		return ""
	}
	return name
}

// metadata fetches u into the cache and returns its sha256. It does so once per run, so
// that the repositories of several architectures are read in the same state.
func (c *Client) metadata(ctx context.Context, u, to *url.URL) (string, error) {
	j, err := c.packageJob(display(u), u)
	if err != nil {
		return "", err
	}
	j.most = c.limits.metadata
	key := hexOf(to.String())
	var digest string
	known := func() bool {
		d, ok := c.read.Load(key)
		if ok {
			digest, ok = d.(string)
		}
		return ok
	}
	err = c.download(ctx, j, func() bool {
		if known() {
			return true
		}
		if d, ok := c.unchanged(ctx, to, c.cache.readVisit(key)); ok {
			digest = d
			c.read.Store(key, d)
			return true
		}
		return false
	}, func(p *part) error {
		digest = p.digest()
		v := visit{ETag: p.meta.ETag, LastModified: p.meta.LastModified, SHA256: digest}
		if err := p.keep(); err != nil {
			return err
		}
		c.read.Store(key, digest)
		return c.cache.writeVisit(key, v)
	})
	return digest, err
}

// unchanged asks the server whether the content in v is still current, and returns its
// digest. On any doubt it returns false: then the file is downloaded, and errors are those
// of the download.
func (c *Client) unchanged(ctx context.Context, u *url.URL, v visit) (string, bool) {
	if v.ETag == "" && v.LastModified == "" || !c.cache.intact(ctx, v.SHA256) {
		return "", false
	}
	client, err := c.packageClient(ctx, u)
	if err != nil {
		return "", false
	}
	req, err := http.NewRequestWithContext(allowPlainHTTP(ctx, u.Scheme == "http"), http.MethodHead, withoutLogin(u).String(), nil)
	if err != nil {
		return "", false
	}
	if v.ETag != "" {
		req.Header.Set("If-None-Match", v.ETag)
	}
	if v.LastModified != "" {
		req.Header.Set("If-Modified-Since", v.LastModified)
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", false
	}
	_ = resp.Body.Close() // a HEAD response has no body
	return v.SHA256, resp.StatusCode == http.StatusNotModified
}

// packageClient returns the client for packages at u, with the credentials in u if it has
// any. Credentials of docker's and Helm's lists are used for https only.
func (c *Client) packageClient(ctx context.Context, u *url.URL) (*http.Client, error) {
	if u.User != nil {
		password, _ := u.User.Password()
		t := &basicLogin{login: login{u.User.Username(), password}, scheme: u.Scheme, host: u.Host, base: c.base}
		return &http.Client{Transport: t, CheckRedirect: checkRedirect}, nil
	}
	if u.Scheme != "https" {
		return c.http, nil
	}
	return c.loggedIn(ctx, u)
}

// hasLoginIn reports whether a text contains an address with a user or password.
func hasLoginIn(text string) bool {
	return slices.ContainsFunc(strings.Fields(text), func(word string) bool {
		return strings.Contains(word, "://") && hasLogin(word)
	})
}
