package delta

import (
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/bundle/archive"
)

// OmittedBlobs tracks the blobs that are not in a delta's archive: those with another source,
// and those without. Keys are digests as "sha256:…", values are sizes in bytes.
type OmittedBlobs struct {
	Absent  map[string]int64 // blobs without a source; filled by the reader of the archive
	Sourced map[string]int64 // blobs with a source other than the archive

	places map[string]*place // by digest of the blobs in Sourced
}

// place is a source of blobs other than the archive.
type place struct {
	name string
	open func(digest string) (io.ReadCloser, int64, error)
}

// NewOmittedBlobs returns the OmittedBlobs of a complete bundle, which is empty.
func NewOmittedBlobs() *OmittedBlobs {
	return &OmittedBlobs{Absent: map[string]int64{}, Sourced: map[string]int64{}, places: map[string]*place{}}
}

// AddSource assigns absent blobs to a source that has them and that checks their content.
func (r *OmittedBlobs) AddSource(name string, has func(digest string, size int64) bool, open func(string) (io.ReadCloser, int64, error)) {
	p := &place{name: name, open: open}
	for d, n := range r.Absent {
		if has(d, n) {
			r.places[d] = p
			r.Sourced[d] = n
			delete(r.Absent, d)
		}
	}
}

// AddUncheckedSource assigns absent blobs to a source that does not check their content. The
// content is compared with the digest while it is read.
func (r *OmittedBlobs) AddUncheckedSource(name string, has map[string]bool, open func(digest string) (io.ReadCloser, error)) {
	r.AddSource(name, func(d string, _ int64) bool { return has[d] }, func(d string) (io.ReadCloser, int64, error) {
		rc, err := open(d)
		if err != nil {
			return nil, 0, err
		}
		return &checked{ReadCloser: rc, want: d, verifier: digest.Digest(d).Verifier(), left: r.Sourced[d]}, r.Sourced[d], nil
	})
}

// Open opens a blob of Sourced and returns its size.
func (r *OmittedBlobs) Open(digest string) (io.ReadCloser, int64, error) {
	p := r.places[digest]
	rc, n, err := p.open(digest)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", p.name, err)
	}
	return &sourced{rc, p.name}, n, nil
}

// sourced adds the source's name to errors.
type sourced struct {
	io.ReadCloser
	name string
}

func (n *sourced) Read(p []byte) (int, error) {
	k, err := n.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%s: %w", n.name, err)
	}
	return k, err
}

// checked compares the content that it reads with a digest and a size.
type checked struct {
	io.ReadCloser
	want     string
	verifier digest.Verifier
	left     int64
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.left -= int64(n)
	_, _ = c.verifier.Write(p[:n]) // a hash never fails
	if c.left < 0 || err == io.EOF && (c.left > 0 || !c.verifier.Verified()) {
		return 0, &archive.Error{Code: archive.ErrDigest, Offset: -1, Detail: "the data received for blob " + c.want + " has another digest"}
	}
	return n, err
}
