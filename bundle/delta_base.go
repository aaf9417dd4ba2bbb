package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/bundle/delta"
	"github.com/mensylisir/kubexm/manifest"
)

// Bases says which archives may hold what a delta leaves out.
type Bases struct {
	Given []string // one that is none of the delta's bases is refused
	Known []string // passed over where they are none, or gone
}

// Archives lists the archive that b is and those that it takes blobs from.
func (b *Bundle) Archives() []*Bundle { return append([]*Bundle{b}, b.bases...) }

// Path is where the archive lies, as it was given to Open.
func (b *Bundle) Path() string { return b.path }

// FindBases opens those archives that hold what is absent: none where nothing is.
func (b *Bundle) FindBases(ctx context.Context, from Bases) error { return b.openBases(ctx, from) }

// openBases opens the archives that hold what is absent, as far as they do.
func (b *Bundle) openBases(ctx context.Context, from Bases) error {
	if b.Delta == nil {
		return nil
	}
	for _, path := range from.Given {
		if err := b.addBase(ctx, path); err != nil {
			return err
		}
	}
	for _, path := range from.Known {
		if len(b.rest.Absent) == 0 {
			break
		}
		var other *delta.BaseError
		if err := b.addBase(ctx, path); err != nil && !errors.As(err, &other) {
			b.passed = append(b.passed, err)
		}
	}
	return nil
}

// addBase opens one archive. Who made it is not asked: each blob that is taken
// from it is one that the delta's own root names, by its digest.
func (b *Bundle) addBase(ctx context.Context, path string) error {
	base, err := OpenPart(ctx, path, Policy{AllowUnsigned: true}, Bases{})
	if err != nil {
		return fmt.Errorf("base: %w", err)
	}
	if !slices.Contains(b.Delta.Bases, base.Root.Digest) {
		return errors.Join(&delta.BaseError{Path: path, Root: base.Root.Digest, Delta: b.Root.Digest, Want: b.Delta.Bases}, base.Close())
	}
	b.bases = append(b.bases, base)
	has := base.held()
	b.rest.Take("base "+path, func(d string, size int64) bool { n, ok := has[d]; return ok && n == size }, base.archive.Blob)
	return nil
}

// Supply makes b read absent blobs from a place that is no archive: a registry.
// Only those in has are asked of it, and what it gives is compared with its
// digest while it is read.
func (b *Bundle) Supply(name string, has map[string]bool, open func(digest string) (io.ReadCloser, error)) {
	b.rest.TakeUnchecked(name, has, open)
}

// Lack is an artifact or image of which a delta lacks blobs.
type Lack struct {
	ID    string        `json:"id"`
	Kind  manifest.Kind `json:"kind"`
	Blobs int           `json:"blobs"`
	Bytes int64         `json:"bytes"`
}

// LackError says what a delta does not hold and no base was there to give.
type LackError struct {
	Delta digest.Digest   `json:"delta"` // its root
	Bases []digest.Digest `json:"bases"` // that it was made against
	Used  []digest.Digest `json:"used"`  // roots of the bases that were at hand
	Lacks []Lack          `json:"lacks"`
	Blobs int             `json:"blobs"` // distinct ones
	Bytes int64           `json:"bytes"`
	// Passed is why archives that may be bases could not be opened.
	Passed []error `json:"-"`
}

func (e *LackError) Error() string {
	var s strings.Builder
	fmt.Fprintf(&s, "delta %s lacks %s (%s) that its base holds: it was made against %s", e.Delta, blobCount(e.Blobs), Bytes(e.Bytes), delta.InWords(e.Bases))
	if len(e.Used) > 0 {
		fmt.Fprintf(&s, "; base %s lacks them too", delta.InWords(e.Used))
	}
	for _, err := range e.Passed {
		fmt.Fprintf(&s, "\n  passed over: %v", err)
	}
	for _, l := range e.Lacks {
		fmt.Fprintf(&s, "\n  %s: %s, %s", l.ID, blobCount(l.Blobs), Bytes(l.Bytes))
	}
	return s.String()
}

func blobCount(n int) string {
	if n == 1 {
		return "1 blob"
	}
	return fmt.Sprintf("%d blobs", n)
}

// Whole is nil where every blob of the bundle can be read, else a *LackError.
func (b *Bundle) Whole() error { return b.lacks(func(string) bool { return true }) }

// LacksFiles is as Whole, of files alone: a registry cannot give these.
func (b *Bundle) LacksFiles() error {
	files := map[string]bool{}
	for _, a := range b.Lock.Artifacts {
		for _, x := range a.Blobs() {
			files["sha256:"+x.SHA256] = true
		}
	}
	return b.lacks(func(d string) bool { return files[d] })
}

// lacks says which of the wanted blobs are absent, and what they belong to.
func (b *Bundle) lacks(want func(digest string) bool) error {
	e := &LackError{Delta: b.Root.Digest, Passed: b.passed}
	absent := map[string]int64{}
	for d, n := range b.rest.Absent {
		if want(d) {
			absent[d] = n
			e.Blobs, e.Bytes = e.Blobs+1, e.Bytes+n
		}
	}
	if e.Blobs == 0 {
		return nil
	}
	if b.Delta != nil {
		e.Bases = b.Delta.Bases
	}
	for _, x := range b.bases {
		e.Used = append(e.Used, x.Root.Digest)
	}
	for _, a := range b.Lock.Artifacts {
		l := Lack{ID: a.ID, Kind: a.Kind}
		for _, x := range a.Blobs() {
			l.count(absent, "sha256:"+x.SHA256)
		}
		e.add(l)
	}
	for _, im := range b.Lock.Images {
		tree, err := b.Tree(im)
		if err != nil {
			return err
		}
		l := Lack{ID: im.ID, Kind: manifest.Image}
		for _, d := range tree {
			l.count(absent, d.Digest.String())
		}
		e.add(l)
	}
	return e
}

func (l *Lack) count(absent map[string]int64, d string) {
	if n, ok := absent[d]; ok {
		l.Blobs, l.Bytes = l.Blobs+1, l.Bytes+n
	}
}

func (e *LackError) add(l Lack) {
	if l.Blobs > 0 {
		e.Lacks = append(e.Lacks, l)
	}
}

// Blob opens a blob of the bundle. Its bytes are checked as they are read: the
// last Read gives an error when they are not what the digest says.
func (b *Bundle) Blob(digest string) (io.ReadCloser, int64, error) {
	if _, ok := b.rest.Given[digest]; ok {
		return b.rest.Open(digest)
	}
	if _, ok := b.rest.Absent[digest]; ok {
		return nil, 0, b.lacks(func(d string) bool { return d == digest })
	}
	return b.archive.Blob(digest)
}

// BlobAt opens a blob in its midst, at off or before it, and gives where. Its bytes
// are not compared with its digest where it does not begin at 0: that is for callers
// who know digests of its parts.
func (b *Bundle) BlobAt(digest string, off int64) (rc io.ReadCloser, at int64, err error) {
	if _, ok := b.rest.Given[digest]; !ok {
		if _, ok := b.rest.Absent[digest]; !ok {
			return b.archive.BlobAt(digest, off)
		}
	}
	rc, _, err = b.Blob(digest)
	return rc, 0, err
}
