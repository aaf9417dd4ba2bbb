package serve

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"sync"
)

// part is the size in bytes of a part of a blob. Each part has a digest after the blob was read
// completely.
const part = 1 << 20

// parts stores the digests of the parts of blobs. The digest of a blob cannot verify a part of
// it. Therefore the first range request reads the complete blob, and later ones only the parts
// that contain their range.
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

// summing computes the digests of the parts of the data that is written to it.
type summing struct {
	sum  hash.Hash
	have int // bytes of the current part
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

// end finishes the current part, if there is one.
func (s *summing) end() {
	if s.sum != nil && s.have > 0 {
		s.all = append(s.all, [sha256.Size]byte(s.sum.Sum(nil)))
		s.sum.Reset()
		s.have = 0
	}
}

// seeker is a source that can read from the middle of a blob: from off or an earlier position.
type seeker interface {
	BlobAt(digest string, off int64) (rc io.ReadCloser, at int64, err error)
}

// readParts writes a range of a blob whose parts have known digests. Each part is verified
// before it is written.
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
			return fmt.Errorf("from byte %d: the content has changed since it was first read", i*part)
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
