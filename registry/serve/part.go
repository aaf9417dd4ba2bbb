package serve

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"sync"
)

// part is how much of a blob has a digest of its own once the blob was read whole,
// in bytes.
const part = 1 << 20

// parts keep the digests of blobs' parts. A blob's own digest says nothing of a part
// of it: the first range that is asked for reads all of the blob, and those after it
// only the parts that they are in.
type parts struct {
	mu sync.Mutex
	of map[string][][sha256.Size]byte // by the blob's digest
}

func (p *parts) get(digest string) [][sha256.Size]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of[digest]
}

func (p *parts) put(digest string, sums [][sha256.Size]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[string][][sha256.Size]byte{}
	}
	p.of[digest] = sums
}

// summing makes the digests of the parts of what is written to it.
type summing struct {
	sum  hash.Hash
	have int // bytes of the part that sum is of
	all  [][sha256.Size]byte
}

// Write implements io.Writer.
func (s *summing) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if s.sum == nil {
			s.sum = sha256.New()
		}
		k := min(len(p), part-s.have)
		s.sum.Write(p[:k])
		p, s.have = p[k:], s.have+k
		if s.have == part {
			s.end()
		}
	}
	return n, nil
}

// end closes the part that was begun, if one was.
func (s *summing) end() {
	if s.sum != nil && s.have > 0 {
		s.all = append(s.all, [sha256.Size]byte(s.sum.Sum(nil)))
		s.sum.Reset()
		s.have = 0
	}
}

// seeker is a source that can begin in the middle of a blob: at off, or before it.
type seeker interface {
	BlobAt(digest string, off int64) (rc io.ReadCloser, at int64, err error)
}

// readParts writes what is wanted of a blob whose parts' digests are known. A part is
// written when it was found to be right.
func (h *Handler) readParts(ctx context.Context, p piece, want span, sums [][sha256.Size]byte, out io.Writer) error {
	first := want.from / part
	rc, at, err := h.openAt(p.digest, first*part)
	if err != nil {
		return err
	}
	defer rc.Close()
	if _, err := io.CopyN(io.Discard, rc, first*part-at); err != nil {
		return fmt.Errorf("before byte %d: %w", first*part, err)
	}
	buf := make([]byte, min(part, p.size))
	for i := first; i*part < want.to; i++ {
		b := buf[:min(part, p.size-i*part)]
		if _, err := io.ReadFull(rc, b); err != nil {
			return fmt.Errorf("from byte %d: %w", i*part, err)
		}
		if sha256.Sum256(b) != sums[i] {
			return fmt.Errorf("from byte %d: it has changed since it was read first", i*part)
		}
		if _, err := out.Write(want.of(b, i*part)); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

func (h *Handler) openAt(digest string, off int64) (io.ReadCloser, int64, error) {
	if s, ok := h.src.(seeker); ok {
		return s.BlobAt(digest, off)
	}
	rc, _, err := h.src.Blob(digest)
	return rc, 0, err
}
