package bundle

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/distribution/reference"

	"github.com/mensylisir/kubexm/manifest"
)

// Item is one artifact, or one platform of an image, in a diff.
type Item struct {
	Kind     manifest.Kind `json:"kind"`
	Name     string        `json:"name"`
	Version  string        `json:"version"`
	Platform string        `json:"platform,omitempty"`
	Size     int64         `json:"size"`   // bytes; 0 if unknown
	Digest   string        `json:"digest"` // "sha256:…"; "" if unknown
}

// ItemChange is an item of both sides with a different version or digest.
type ItemChange struct {
	From Item `json:"from"`
	To   Item `json:"to"`
}

// Diff is the difference between two bundles.
type Diff struct {
	Added   []Item       `json:"added"`
	Removed []Item       `json:"removed"`
	Changed []ItemChange `json:"changed"`
	Same    int          `json:"same"`
	// Bytes is the size of what the second has and the first lacks. Between two archives it
	// is exact, blob by blob. A lock does not list layers, so a changed image counts with
	// its full size: the result is an upper bound.
	Bytes int64 `json:"bytes"`
	Exact bool  `json:"exact"`
}

// Side is one side of a comparison: an archive, or a lock file.
type Side struct {
	Lock  *manifest.Lock
	blobs map[string]int64 // of an archive; nil for a lock
}

// ReadSide reads an archive (by its first volume if it is in volumes) or a lock file, which
// is not signed. Policy is applied to an archive.
func ReadSide(ctx context.Context, path string, policy Policy) (*Side, error) {
	lock, err := looksLikeLock(path)
	if err != nil {
		return nil, err
	}
	if lock {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		l, problems := manifest.DecodeLock(f)
		if err := errors.Join(problems.In(path).Err(), f.Close()); err != nil {
			return nil, err
		}
		return &Side{Lock: l}, nil
	}
	b, err := OpenPartial(ctx, path, policy, Bases{}) // a delta too lists all blobs of the complete bundle
	if err != nil {
		return nil, err
	}
	return &Side{Lock: b.Lock, blobs: b.allBlobs()}, b.Close()
}

// looksLikeLock reports whether a file is text with an apiVersion, by its first bytes. For
// a missing file it returns false: Open reports that, with advice about volumes.
func looksLikeLock(path string) (bool, error) {
	fi, err := os.Stat(path)
	if err != nil || !fi.Mode().IsRegular() {
		return false, nil //nolint:nilerr // Open reports it, with advice about volumes
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return false, errors.Join(err, f.Close())
	}
	return bytes.Contains(head[:n], []byte("apiVersion")), f.Close()
}

// Compare returns what changes from one side to the other.
func Compare(from, to *Side) Diff {
	d := Diff{Added: []Item{}, Removed: []Item{}, Changed: []ItemChange{}}
	old := map[Item][]Item{} // by kind, name and platform
	for _, x := range items(from.Lock, to.Lock) {
		old[x.key()] = append(old[x.key()], x)
	}
	fresh := map[Item][]Item{}
	var keys []Item
	for _, x := range items(to.Lock, from.Lock) {
		k := x.key()
		// Match equal versions first: the rest has changed its version.
		if i := slices.IndexFunc(old[k], func(y Item) bool { return y.Version == x.Version }); i >= 0 {
			y := old[k][i]
			old[k] = slices.Delete(old[k], i, i+1)
			if y.Digest == x.Digest {
				d.Same++
			} else {
				d.Changed = append(d.Changed, ItemChange{y, x})
			}
			continue
		}
		if len(fresh[k]) == 0 {
			keys = append(keys, k)
		}
		fresh[k] = append(fresh[k], x)
	}
	for _, k := range keys {
		for _, x := range fresh[k] {
			if len(old[k]) == 0 {
				d.Added = append(d.Added, x)
				continue
			}
			d.Changed = append(d.Changed, ItemChange{old[k][0], x})
			old[k] = old[k][1:]
		}
	}
	for _, left := range old {
		d.Removed = append(d.Removed, left...)
	}
	slices.SortFunc(d.Added, Item.compare)
	slices.SortFunc(d.Removed, Item.compare)
	slices.SortFunc(d.Changed, func(a, b ItemChange) int { return a.To.compare(b.To) })
	d.Exact = from.blobs != nil && to.blobs != nil
	have, want := from.content(d.Exact), to.content(d.Exact)
	for digest, n := range want {
		if _, ok := have[digest]; !ok {
			d.Bytes += n
		}
	}
	return d
}

func (x Item) key() Item { return Item{Kind: x.Kind, Name: x.Name, Platform: x.Platform} }

func (x Item) compare(y Item) int {
	return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Name, y.Name), cmp.Compare(x.Platform, y.Platform), cmp.Compare(x.Version, y.Version))
}

// items lists the content of a lock, sorted. A package repository that the other lock has
// too is listed package by package.
func items(l, other *manifest.Lock) []Item {
	var all []Item
	for _, a := range l.Artifacts {
		if a.Kind == manifest.Packages && slices.ContainsFunc(other.Artifacts, func(b manifest.Artifact) bool { return a.ID == b.ID }) {
			all = append(all, packageItems(a)...)
			continue
		}
		x := Item{Kind: a.Kind, Name: a.Name, Version: a.Version, Platform: a.Platform.String()}
		if a.SHA256 != "" {
			x.Digest = "sha256:" + a.SHA256
		}
		x.Size = bytesOf(a)
		all = append(all, x)
	}
	for _, im := range l.Images {
		x := Item{Kind: manifest.Image, Name: im.Reference, Digest: im.Digest}
		if named, err := reference.ParseNormalizedNamed(im.Reference); err == nil {
			x.Name = named.Name()
			if t, ok := named.(reference.Tagged); ok {
				x.Version = t.Tag()
			} else if d, ok := named.(reference.Digested); ok {
				x.Version = d.Digest().String()
			}
		}
		for _, p := range im.Platforms {
			x.Platform, x.Size, x.Digest = p.Platform.String(), p.Size+p.Content, p.Digest
			all = append(all, x)
		}
		if len(im.Platforms) == 0 {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, Item.compare)
	return all
}

// content returns the blobs of a side by digest, with sizes in bytes.
func (s *Side) content(exact bool) map[string]int64 {
	if exact {
		return s.blobs
	}
	m := map[string]int64{}
	for _, a := range s.Lock.Artifacts {
		for _, b := range a.Blobs() {
			m["sha256:"+b.SHA256] = b.Size
		}
	}
	for _, im := range s.Lock.Images {
		m[im.Digest] = im.Size
		for _, p := range im.Platforms {
			m[p.Digest] = p.Size + p.Content
		}
	}
	return m
}

// String returns "kind name version platform".
func (x Item) String() string {
	s := fmt.Sprintf("%s %s %s", x.Kind, x.Name, x.Version)
	if x.Platform != "" {
		s += " " + x.Platform
	}
	return s
}
