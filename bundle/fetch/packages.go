package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/packaging/system"
)

// MetadataError reports that the repository metadata generated from the lock does not match
// the lock's pin.
type MetadataError struct {
	Repository, Path string
	Want, Got        string // sha256 in hex; Got is "" if the file is not generated
}

// Error returns both digests and what to do.
func (e *MetadataError) Error() string {
	is := "has sha256 " + e.Got
	if e.Got == "" {
		is = "is not among the files that kubexm generates"
	}
	return fmt.Sprintf("%s of the packages of %s %s, the lock pins %s; the lock was edited by hand, or written by another version of kubexm: "+
		"lock again with `kubexm bundle lock --update`", e.Path, e.Repository, is, e.Want)
}

// fetchPackages fetches all files of a package repository into the cache.
func (c *Client) fetchPackages(ctx context.Context, a manifest.Artifact) error {
	for _, m := range a.Members {
		if !isHexDigest(m.SHA256) {
			return fmt.Errorf("not pinned: %s has no sha256", m.Path)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(c.options.Parallel)
	for _, m := range a.Members {
		g.Go(func() error { return c.FetchMember(ctx, a, m) })
	}
	return g.Wait()
}

// FetchMember fetches one file of a package repository into the cache: a package from its
// address, or the repository's metadata, which is generated from the lock. A package that
// does not match its pin is a *DigestError or a *SizeError, metadata a *MetadataError.
func (c *Client) FetchMember(ctx context.Context, a manifest.Artifact, m manifest.Member) error {
	switch {
	case !isHexDigest(m.SHA256):
		return fmt.Errorf("not pinned: %s has no sha256", m.Path)
	case c.cache.Has(m.SHA256, m.Size):
		return nil
	case m.Package == "":
		return c.writeMetadata(ctx, a)
	}
	name := m.Package + " of " + a.Name
	u, err := url.Parse(m.Address)
	if err != nil {
		return fmt.Errorf("%s: %q is not an address", name, m.Address)
	}
	if u.Scheme == "file" {
		return c.copyPackage(ctx, name, m, u)
	}
	j, err := c.packageJob(name, u)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	j.sha256, j.size = m.SHA256, m.Size
	err = c.download(ctx, j, func() bool { return c.cache.Has(m.SHA256, m.Size) }, (*part).keep)
	return adviseReplaced(name, err)
}

// packageJob is the download of u, without an expected size or digest. Plain http needs no
// permission here, as for apt and dnf, because no package is trusted for its source: a
// package's file has its digest in the lock, and metadata is signed or has its digest in
// signed metadata. pinPackages refuses unsigned repositories over http. An https address
// may still not redirect to plain http.
func (c *Client) packageJob(name string, u *url.URL) (*job, error) {
	to, err := c.rewrite(u)
	if err != nil {
		return nil, err
	}
	return &job{
		name: name, address: display(u), target: display(to), size: -1,
		open: func(ctx context.Context) (doer, *url.URL, error) {
			client, err := c.packageClient(ctx, to)
			return plainDoer{client, to.Scheme == "http"}, withoutLogin(to), err
		},
	}, nil
}

// rewrite returns the address to request instead of u. Credentials in u are for u's host
// only.
func (c *Client) rewrite(u *url.URL) (*url.URL, error) {
	target, _ := c.options.Sources.Rewrite(withoutLogin(u).String())
	to, err := url.Parse(target)
	if err != nil || to.Host == "" || to.Scheme != "https" && to.Scheme != "http" {
		return nil, fmt.Errorf("%q is not an http address of a file", display(u))
	}
	if to.Scheme == u.Scheme && to.Host == u.Host {
		to.User = u.User
	}
	return to, nil
}

// withoutLogin returns u without credentials: they are sent in a header, to its host only.
func withoutLogin(u *url.URL) *url.URL {
	b := *u
	b.User = nil
	return &b
}

// copyPackage copies a package from a repository on this machine.
func (c *Client) copyPackage(ctx context.Context, name string, m manifest.Member, u *url.URL) error {
	f, err := openFile(u)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer func() { _ = f.Close() }() // opened for reading only
	err = c.cache.Put(ctx, m.SHA256, m.Size, f)
	if wrong, ok := errors.AsType[*DigestError](err); ok {
		return &DigestError{Name: name, Address: m.Address, Want: m.SHA256, Got: wrong.Got}
	}
	if wrong, ok := errors.AsType[*SizeError](err); ok {
		return &SizeError{Name: name, Address: m.Address, Want: m.Size, Got: wrong.Got}
	}
	return err
}

// openFile opens the file of a file: address.
func openFile(u *url.URL) (*os.File, error) {
	at := u.Path
	if info, err := os.Stat(at); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() { // opening a pipe would block
		return nil, &fs.PathError{Op: "open", Path: at, Err: errors.New("it is not a regular file")}
	}
	return os.Open(at)
}

// adviseReplaced adds advice to the error that a package no longer exists.
func adviseReplaced(name string, err error) error {
	status, ok := errors.AsType[*StatusError](err)
	if !ok || !status.absent() {
		return err
	}
	e := *status
	e.Advice = "a distribution keeps only the newest versions: lock again with `kubexm bundle lock --update`, or set a mirror with the older ones in spec.sources"
	return fmt.Errorf("%s: %w", name, &e)
}

// writeMetadata generates the metadata of a's repository into the cache.
func (c *Client) writeMetadata(ctx context.Context, a manifest.Artifact) error {
	files, err := system.Metadata(a)
	if err != nil {
		return fmt.Errorf("write the metadata of the packages of %s: %w", a.Name, err)
	}
	written := map[string][]byte{}
	for _, f := range files {
		written[f.Path] = f.Content
	}
	for _, m := range a.Members {
		if m.Package != "" {
			continue
		}
		content, ok := written[m.Path]
		if !ok {
			return &MetadataError{Repository: a.Name, Path: m.Path, Want: m.SHA256}
		}
		if got := hexDigestOf(content); got != m.SHA256 || int64(len(content)) != m.Size {
			return &MetadataError{Repository: a.Name, Path: m.Path, Want: m.SHA256, Got: got}
		}
		if err := c.cache.Put(ctx, m.SHA256, m.Size, bytes.NewReader(content)); err != nil {
			return err
		}
	}
	return nil
}
