package fetch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mensylisir/kubexm/manifest"
)

// fetchArchive fetches the selected entries of a into the cache. The archive's own digest
// is checked before any of it is unpacked.
func (c *Client) fetchArchive(ctx context.Context, a manifest.Artifact) error {
	done := func() bool {
		for _, m := range a.Members {
			if !c.cache.Has(m.SHA256, m.Size) {
				return false
			}
		}
		return true
	}
	if done() {
		return nil
	}
	j, err := c.fileJob(a, a.Size)
	if err != nil {
		return err
	}
	return c.download(ctx, j, done, func(p *part) error {
		_, err := c.unpack(ctx, a, j, p, nil)
		return err
	})
}

// UnpackArtifact returns what downloads the archive a and gives its selected entries to files
// of the caller; nil if a is no archive of pinned entries. Only the archive itself is in the
// cache, until it is unpacked.
func (c *Client) UnpackArtifact(a manifest.Artifact) Unpack {
	if a.Archive == "" || a.Kind == manifest.Packages || a.Kind == manifest.Chart || !isHexDigest(a.SHA256) ||
		slices.ContainsFunc(a.Members, func(m manifest.Member) bool { return !isHexDigest(m.SHA256) }) {
		return nil
	}
	return func(ctx context.Context, open OpenFile) error {
		j, err := c.fileJob(a, a.Size)
		if err != nil {
			return err
		}
		return c.download(ctx, j, func() bool { return false }, func(p *part) error {
			_, err := c.unpack(ctx, a, j, p, open)
			return err
		})
	}
}

// pinArchive sets the missing fields of a and its entries, from the record of an earlier
// download of the same archive or from the archive.
func (c *Client) pinArchive(ctx context.Context, a manifest.Artifact) (manifest.Artifact, error) {
	if len(a.Members) == 0 {
		return a, errors.New("an archive of which no entries are selected")
	}
	size := int64(-1)
	if a.Size > 0 {
		size = a.Size
	}
	j, err := c.fileJob(a, size)
	if err != nil {
		return a, err
	}
	pinned := a
	recorded := func() bool {
		if a.SHA256 == "" {
			return false
		}
		var ok bool
		pinned, ok = c.cache.readDerived(a.SHA256).pin(a)
		return ok
	}
	if recorded() {
		return pinned, nil
	}
	err = c.download(ctx, j, recorded, func(p *part) error {
		var err error
		pinned, err = c.unpack(ctx, a, j, p, nil)
		return err
	})
	if err != nil {
		return a, err
	}
	return pinned, nil
}

// unpack stores a's selected entries as blobs, or in the files that open returns. It records
// them, and returns a with all fields set. It removes p, which is the checked archive.
func (c *Client) unpack(ctx context.Context, a manifest.Artifact, j *job, p *part, open OpenFile) (manifest.Artifact, error) {
	if a.SHA256 == "" {
		a.SHA256, a.Trust = p.digest(), manifest.FromContent
	}
	a.Size = p.have
	x := &extraction{path: p.path, format: a.Archive, limits: c.limits, create: func(context.Context, string) (entryFile, error) { return c.cache.newBlob() }}
	if open != nil {
		x.create = func(ctx context.Context, selected string) (entryFile, error) {
			return openEntry(ctx, a, selected, open)
		}
	}
	defer x.abort()
	if err := x.run(ctx, memberPaths(a.Members)); err != nil {
		if wrong, ok := errors.AsType[*DigestError](err); ok {
			wrong.Address, wrong.Target = a.Address, j.target
			return a, wrong
		}
		return a, fmt.Errorf("archive %s: %w", a.Address, err)
	}
	members := make([]manifest.Member, len(a.Members))
	for i, m := range a.Members {
		w := x.found[m.Path]
		if m.SHA256 != "" && m.SHA256 != w.digest() {
			return a, &DigestError{Name: a.ID + ": entry " + m.Path, Address: a.Address, Target: j.target, Want: m.SHA256, Got: w.digest()}
		}
		m.Size, m.SHA256 = w.length(), w.digest()
		members[i] = m
	}
	a.Members = members
	if err := x.commit(); err != nil {
		return a, err
	}
	if err := c.cache.addDerived(a); err != nil {
		return a, fmt.Errorf("record the archive's entries: %w", err)
	}
	return a, p.remove()
}

func memberPaths(ms []manifest.Member) []string {
	paths := make([]string, len(ms))
	for i, m := range ms {
		paths[i] = m.Path
	}
	return paths
}
