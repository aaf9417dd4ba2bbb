package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
)

// BlobWriter writes one stored blob to its place, in order, in as many pieces as it arrives
// in. It must be closed. It is for one goroutine.
type BlobWriter struct {
	w      *Writer
	m      *Member
	dst    *storedWriter
	noted  int64 // the prefix that the journal has
	closed bool
}

// Blob starts to write the stored blob with this digest. It continues the beginning that an
// earlier Writer wrote. Errors are those of WriteStored.
func (w *Writer) Blob(ctx context.Context, digest string) (*BlobWriter, error) {
	m, err := w.claim(digest)
	if err != nil {
		return nil, err
	}
	b := &BlobWriter{w: w, m: m}
	if b.dst, err = newStoredWriter(w.file, m, sha256.New(), &w.pool); err != nil {
		w.settle(m, missing)
		return nil, err
	}
	b.dst.note = b.note
	w.mu.Lock()
	n := int64(0)
	if w.claims != nil {
		n = w.claims.prefixes[digest]
	}
	w.mu.Unlock()
	if n > 0 && n <= m.Size {
		if err := b.resume(ctx, n); err != nil {
			if err := errors.Join(ctx.Err(), b.Reset()); err != nil {
				return nil, errors.Join(err, b.Close())
			}
		}
	}
	return b, nil
}

// resume reads the first n bytes of the blob back and continues after them. After an error,
// only Reset and Close may be called.
func (b *BlobWriter) resume(ctx context.Context, n int64) error {
	r, err := b.w.back.open(b.m)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // opened for reading only
	r.Uncheck()
	blocks := n / blockSize * blockSize
	if blocks > 0 {
		if _, err := io.CopyN(io.MultiWriter(meter{stop: ctx.Err}, b.dst.sum), r, blocks); err != nil {
			return err
		}
		b.dst.resume(blocks)
	}
	if _, err := b.dst.readFrom(io.LimitReader(r, n-blocks)); err != nil {
		return err
	}
	if b.dst.have != n {
		return io.ErrUnexpectedEOF
	}
	b.noted = n
	return nil
}

func (b *BlobWriter) note(kept int64) {
	b.noted = kept
	b.w.journal.prefix(b.m, kept)
}

// Have returns the bytes of content received.
func (b *BlobWriter) Have() int64 { return b.dst.have }

// Digest returns the sha256 of the content received, in hex.
func (b *BlobWriter) Digest() string { return hex.EncodeToString(b.dst.sum.Sum(nil)) }

// ReadFrom adds content until r ends. Errors of r are returned unchanged; what arrived before
// counts. Content beyond the blob's size is ErrSize.
func (b *BlobWriter) ReadFrom(r io.Reader) (int64, error) { return b.dst.readFrom(r) }

// Reset discards what was received.
func (b *BlobWriter) Reset() error {
	if b.noted > 0 {
		b.noted = 0
		b.w.journal.prefix(b.m, 0)
	}
	return b.dst.reset()
}

// Commit checks size and digest and completes the blob. After an error, only Reset and Close
// may be called.
func (b *BlobWriter) Commit() error {
	if err := b.dst.finish(); err != nil {
		return err
	}
	b.closed = true
	b.dst.release()
	b.w.settle(b.m, written)
	b.w.journal.complete(b.m)
	return nil
}

// Close ends the writing. Without a Commit the blob is missing; a later Writer with Resume
// continues it. After Commit it does nothing.
func (b *BlobWriter) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	if b.w.journal != nil && b.dst.have > b.noted && b.dst.spill() == nil {
		b.note(b.dst.have)
	}
	b.dst.release()
	b.w.settle(b.m, missing)
	return nil
}
