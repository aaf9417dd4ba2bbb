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

// Bases lists archives that may contain the blobs that a delta leaves out.
type Bases struct {
	Explicit []string // an archive that is not one of the delta's bases is an error
	Known    []string // skipped if it is not one of the delta's bases, or does not exist
}

// Archives returns b and the archives that b reads blobs from.
func (b *Bundle) Archives() []*Bundle { return append([]*Bundle{b}, b.bases...) }

// Path is the path of the archive, as given to Open.
func (b *Bundle) Path() string { return b.path }

// FindBases opens those archives that contain absent blobs; none if no blob is absent.
func (b *Bundle) FindBases(ctx context.Context, from Bases) error { return b.openBases(ctx, from) }

// openBases opens the archives of from that are bases of b.
func (b *Bundle) openBases(ctx context.Context, from Bases) error {
	if b.Delta == nil {
		return nil
	}
	for _, path := range from.Explicit {
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

// addBase opens one archive as a base. Its signature is not checked: every blob read from
// it is checked against a digest of the delta's own root.
func (b *Bundle) addBase(ctx context.Context, path string) error {
	base, err := OpenPartial(ctx, path, Policy{AllowUnsigned: true}, Bases{})
	if err != nil {
		return fmt.Errorf("base: %w", err)
	}
	if !slices.Contains(b.Delta.Bases, base.Root.Digest) {
		return errors.Join(&delta.BaseError{Path: path, Root: base.Root.Digest, Delta: b.Root.Digest, Want: b.Delta.Bases}, base.Close())
	}
	b.bases = append(b.bases, base)
	has := base.held()
	b.rest.AddSource("base "+path, func(d string, size int64) bool { n, ok := has[d]; return ok && n == size }, base.archive.Blob)
	return nil
}

// AddSource lets b read absent blobs from a source that is not an archive, such as a registry.
// Only blobs in has are requested, and their content is checked against their digests while
// it is read.
func (b *Bundle) AddSource(name string, has map[string]bool, open func(digest string) (io.ReadCloser, error)) {
	b.rest.AddUncheckedSource(name, has, open)
}

// IncompleteItem is an artifact or image of which a delta lacks blobs.
type IncompleteItem struct {
	ID    string        `json:"id"`
	Kind  manifest.Kind `json:"kind"`
	Blobs int           `json:"blobs"`
	Bytes int64         `json:"bytes"`
}

// AbsentBlobsError lists the blobs that neither a delta nor the available bases contain.
type AbsentBlobsError struct {
	Delta digest.Digest    `json:"delta"` // its root
	Bases []digest.Digest  `json:"bases"` // that it was built against
	Used  []digest.Digest  `json:"used"`  // roots of the bases that were opened
	Items []IncompleteItem `json:"lacks"`
	Blobs int              `json:"blobs"` // number of distinct blobs
	Bytes int64            `json:"bytes"`
	// Passed has the errors of known archives that could not be opened.
	Passed []error `json:"-"`
}

func (e *AbsentBlobsError) Error() string {
	var s strings.Builder
	fmt.Fprintf(&s, "delta %s lacks %s (%s) that its base contains: it was built against %s", e.Delta, blobCount(e.Blobs), Bytes(e.Bytes), delta.FormatBases(e.Bases))
	if len(e.Used) > 0 {
		fmt.Fprintf(&s, "; base %s lacks them too", delta.FormatBases(e.Used))
	}
	for _, err := range e.Passed {
		fmt.Fprintf(&s, "\n  skipped: %v", err)
	}
	for _, l := range e.Items {
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

// CheckComplete returns nil if every blob of the bundle can be read, else an *AbsentBlobsError.
func (b *Bundle) CheckComplete() error { return b.checkAbsent(func(string) bool { return true }) }

// CheckFiles is like CheckComplete for files only, which a registry cannot supply.
func (b *Bundle) CheckFiles() error {
	files := map[string]bool{}
	for _, a := range b.Lock.Artifacts {
		for _, x := range a.Blobs() {
			files["sha256:"+x.SHA256] = true
		}
	}
	return b.checkAbsent(func(d string) bool { return files[d] })
}

// checkAbsent returns an *AbsentBlobsError for the selected blobs that are absent, with their
// artifacts.
func (b *Bundle) checkAbsent(want func(digest string) bool) error {
	e := &AbsentBlobsError{Delta: b.Root.Digest, Passed: b.passed}
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
		l := IncompleteItem{ID: a.ID, Kind: a.Kind}
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
		l := IncompleteItem{ID: im.ID, Kind: manifest.Image}
		for _, d := range tree {
			l.count(absent, d.Digest.String())
		}
		e.add(l)
	}
	return e
}

func (l *IncompleteItem) count(absent map[string]int64, d string) {
	if n, ok := absent[d]; ok {
		l.Blobs, l.Bytes = l.Blobs+1, l.Bytes+n
	}
}

func (e *AbsentBlobsError) add(l IncompleteItem) {
	if l.Blobs > 0 {
		e.Items = append(e.Items, l)
	}
}

// Blob opens a blob of the bundle. Its content is checked while it is read: the last Read
// returns an error if it does not match the digest.
func (b *Bundle) Blob(digest string) (io.ReadCloser, int64, error) {
	if _, ok := b.rest.Sourced[digest]; ok {
		return b.rest.Open(digest)
	}
	if _, ok := b.rest.Absent[digest]; ok {
		return nil, 0, b.checkAbsent(func(d string) bool { return d == digest })
	}
	return b.archive.Blob(digest)
}

// BlobAt opens a blob at or before off and returns the actual offset. Unless that is 0, the
// content is not checked against the digest: the caller must check it by digests of its
// parts.
func (b *Bundle) BlobAt(digest string, off int64) (rc io.ReadCloser, at int64, err error) {
	if _, ok := b.rest.Sourced[digest]; !ok {
		if _, ok := b.rest.Absent[digest]; !ok {
			return b.archive.BlobAt(digest, off)
		}
	}
	rc, _, err = b.Blob(digest)
	return rc, 0, err
}
