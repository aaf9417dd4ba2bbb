package delta

import (
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/bundle/archive"
)

// Rest is what a delta's archive does not hold: blobs that are read from elsewhere, and
// those that nobody has. Digests are written "sha256:…", sizes are bytes.
type Rest struct {
	Absent map[string]int64 // that nobody has; whoever reads the archive fills it
	Given  map[string]int64 // that a place beside the archive gives

	places map[string]*place // of those in Given
}

// place is where blobs are read from, beside the archive.
type place struct {
	name string
	open func(digest string) (io.ReadCloser, int64, error)
}

// NewRest is the rest of a whole bundle: nothing.
func NewRest() *Rest {
	return &Rest{Absent: map[string]int64{}, Given: map[string]int64{}, places: map[string]*place{}}
}

// Take takes what is absent from a place that has it and that checks what it gives.
func (r *Rest) Take(name string, has func(digest string, size int64) bool, open func(string) (io.ReadCloser, int64, error)) {
	p := &place{name: name, open: open}
	for d, n := range r.Absent {
		if has(d, n) {
			r.places[d] = p
			r.Given[d] = n
			delete(r.Absent, d)
		}
	}
}

// TakeUnchecked takes what is absent from a place that is no archive. What it gives is
// compared with its digest while it is read.
func (r *Rest) TakeUnchecked(name string, has map[string]bool, open func(digest string) (io.ReadCloser, error)) {
	r.Take(name, func(d string, _ int64) bool { return has[d] }, func(d string) (io.ReadCloser, int64, error) {
		rc, err := open(d)
		if err != nil {
			return nil, 0, err
		}
		return &checked{ReadCloser: rc, want: d, verifier: digest.Digest(d).Verifier(), left: r.Given[d]}, r.Given[d], nil
	})
}

// Open opens a blob of Given, and gives its size.
func (r *Rest) Open(digest string) (io.ReadCloser, int64, error) {
	p := r.places[digest]
	rc, n, err := p.open(digest)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", p.name, err)
	}
	return &sourced{rc, p.name}, n, nil
}

// sourced says of an error where the bytes came from.
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

// checked compares what it reads with a digest and a size.
type checked struct {
	io.ReadCloser
	want     string
	verifier digest.Verifier
	left     int64
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.left -= int64(n)
	_, _ = c.verifier.Write(p[:n]) // a hash takes all
	if c.left < 0 || err == io.EOF && (c.left > 0 || !c.verifier.Verified()) {
		return 0, &archive.Error{Code: archive.ErrDigest, Offset: -1, Detail: "what came for blob " + c.want + " is not that"}
	}
	return n, err
}
