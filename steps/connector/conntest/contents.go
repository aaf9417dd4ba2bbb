package conntest

import (
	"bytes"
	"hash/maphash"
	"io"
	"sync"
)

// Contents are contents of files that several hosts have. A thousand nodes of a cluster mostly
// have the same files, one of which lists them all. It is safe for concurrent use.
type Contents struct {
	mu      sync.Mutex
	seed    maphash.Seed
	known   map[uint64][]byte // by hash; a second one of the same hash is not shared
	buffers sync.Pool         // of *bytes.Buffer
}

// NewContents returns Contents without content.
func NewContents() *Contents {
	return &Contents{seed: maphash.MakeSeed(), known: map[uint64][]byte{}, buffers: sync.Pool{New: func() any { return new(bytes.Buffer) }}}
}

// ShareContents makes files that are written from now on use the memory of equal ones of other hosts
// with these Contents.
func (s *Sim) ShareContents(c *Contents) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.contents = c
}

func (s *Sim) sharedContents() *Contents {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.contents
}

// of returns the shared bytes that equal b, which nobody may change. b itself is not kept.
func (c *Contents) of(b []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := maphash.Bytes(c.seed, b)
	known, ok := c.known[h]
	if ok && bytes.Equal(known, b) {
		return known
	}
	own := bytes.Clone(b)
	if !ok {
		c.known[h] = own
	}
	return own
}

// ofText is of for text.
func (c *Contents) ofText(text string) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := maphash.String(c.seed, text)
	known, ok := c.known[h]
	if ok && string(known) == text {
		return known
	}
	own := []byte(text)
	if !ok {
		c.known[h] = own
	}
	return own
}

// read returns everything that r provides.
func (c *Contents) read(r io.Reader) ([]byte, error) {
	buf, ok := c.buffers.Get().(*bytes.Buffer)
	if !ok {
		buf = new(bytes.Buffer)
	}
	defer c.buffers.Put(buf)
	buf.Reset()
	if _, err := buf.ReadFrom(r); err != nil {
		return nil, err
	}
	return c.of(buf.Bytes()), nil
}
