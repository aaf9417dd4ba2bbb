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

// packageWeb opens the files of repositories of packages, through the client's
// sources. What it read in an earlier run it asks for again only as far as to hear
// whether that still stands.
type packageWeb struct {
	client *Client

	mu    sync.Mutex
	plain []string // hosts that were asked without TLS and without leave
}

// absentError is an answer that says that there is nothing.
type absentError struct{ error }

// Is tells that it is one of a file that does not exist.
func (e absentError) Is(target error) bool { return target == fs.ErrNotExist }

// Unwrap gives the answer.
func (e absentError) Unwrap() error { return e.error }

// Open implements packaging.Web.
func (w *packageWeb) Open(ctx context.Context, address string) (io.ReadCloser, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("an address that is none") // the error of net/url quotes it, with a password that it may hold
	}
	if u.Scheme == "file" {
		return openFile(u)
	}
	to, err := w.client.standIn(u)
	if err != nil {
		return nil, err
	}
	w.note(u, to)
	if digest := namedDigest(u); w.client.cache.sound(ctx, digest) {
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

// note remembers a host that is asked over plain http, where nothing gives leave.
func (w *packageWeb) note(u, to *url.URL) {
	if _, leave := w.client.options.Sources.Rewrite(withoutLogin(u).String()); leave || to.Scheme != "http" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.plain, to.Host) {
		w.plain = append(w.plain, to.Host)
	}
}

// plainHosts gives the hosts that note remembers, sorted.
func (w *packageWeb) plainHosts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(slices.Values(w.plain))
}

// namedDigest gives the sha256 that a file has in its name, "" where it has none:
// by-hash/SHA256/… of apt, repodata/…-primary.xml.gz of rpm. Such content never
// changes, and who reads it compares it with what the repository says.
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

// metadata brings what u names into the cache and gives its sha256. Once in a run is
// enough: repositories of several architectures are then read as of one moment.
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

// unchanged asks whether what v says of u still stands, and gives its digest. When
// in doubt it does not: then it is downloaded, and errors are that download's.
func (c *Client) unchanged(ctx context.Context, u *url.URL, v visit) (string, bool) {
	if v.ETag == "" && v.LastModified == "" || !c.cache.sound(ctx, v.SHA256) {
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
	_ = resp.Body.Close() // a HEAD has none
	return v.SHA256, resp.StatusCode == http.StatusNotModified
}

// packageClient gives the client that asks for packages at u, with u's own
// credentials where it has them. Those of docker's and Helm's lists are kept for
// https, and for what the sources give leave to ask without.
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

// hasLoginIn tells whether a text holds an address with a user or password in it.
func hasLoginIn(text string) bool {
	return slices.ContainsFunc(strings.Fields(text), func(word string) bool {
		return strings.Contains(word, "://") && hasLogin(word)
	})
}
