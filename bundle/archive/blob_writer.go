package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
)

// BlobWriter writes one blob, in order, in as many pieces as it arrives in. It must be
// closed. It is for one goroutine.
type BlobWriter interface {
	// ReadFrom adds content until the reader ends. Errors of the reader are returned
	// unchanged; what arrived before counts. Content beyond the blob's size is ErrSize.
	io.ReaderFrom
	// Have returns the bytes of content received.
	Have() int64
	// Digest returns the sha256 of the content received, in hex.
	Digest() string
	// Reset discards what was received.
	Reset() error
	// Commit checks size and digest and completes the blob. After an error, only Reset and
	// Close may be called.
	Commit() error
	// Close ends the writing. Without a Commit the blob is missing; a later Writer with
	// Resume continues it. After Commit it does nothing.
	Close() error
}

// Blob starts to write the blob with this digest. It continues the beginning that an earlier
// Writer wrote. Errors are those of WriteStored. A compressed blob waits for WriteStaged.
func (w *Writer) Blob(ctx context.Context, digest string) (BlobWriter, error) {
	return w.blob(ctx, digest, sha256.New())
}

func (w *Writer) blob(ctx context.Context, digest string, sum hash.Hash) (BlobWriter, error) {
	m, err := w.claim(digest)
	if err != nil {
		return nil, err
	}
	if !m.Stored() {
		s, err := w.stage(ctx, m, sum)
		if err != nil {
			w.settle(m, missing)
			if s != nil {
				err = errors.Join(err, s.Close())
			}
			return nil, err
		}
		return s, nil
	}
	b := &storedBlob{w: w, m: m}
	if b.dst, err = newStoredWriter(w.file, m, sum, &w.pool); err != nil {
		w.settle(m, missing)
		return nil, err
	}
	b.dst.note = b.note
	w.mu.Lock()
	n := int64(0)
	if w.claims != nil {
		n = w.claims.prefixes[digest].prefix
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

// Write copies the blob with this digest from r: a stored one to its place, a compressed one
// to where WriteStaged finds it. It checks size and digest; for Checked content, only the
// size. Errors are those of WriteStored.
func (w *Writer) Write(ctx context.Context, digest string, r io.Reader) error {
	if f, ok := r.(*Frames); ok {
		m, err := w.claim(digest)
		if err != nil {
			return err
		}
		if !m.Stored() {
			err = w.copyFrames(ctx, m, f)
			if err != nil {
				w.settle(m, missing)
			}
			return err
		}
		w.settle(m, missing)
	}
	b, err := w.blob(ctx, digest, sumOf(r))
	if err != nil {
		return err
	}
	if b.Have() > 0 { // of an earlier Writer, and not needed
		err = b.Reset()
	}
	if err == nil {
		_, err = b.ReadFrom(interruptible{r, ctx.Err})
	}
	if err == nil {
		err = b.Commit()
	}
	return errors.Join(err, b.Close())
}

// storedBlob writes one stored blob to its place.
type storedBlob struct {
	w      *Writer
	m      *Member
	dst    *storedWriter
	noted  int64 // the prefix that the journal has
	closed bool
}

// resume reads the first n bytes of the blob back and continues after them. After an error,
// only Reset and Close may be called.
func (b *storedBlob) resume(ctx context.Context, n int64) error {
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

func (b *storedBlob) note(kept int64) {
	b.noted = kept
	b.w.journal.prefix(b.m, kept)
}

// Have implements BlobWriter.
func (b *storedBlob) Have() int64 { return b.dst.have }

// Digest implements BlobWriter.
func (b *storedBlob) Digest() string { return hex.EncodeToString(b.dst.sum.Sum(nil)) }

// ReadFrom implements BlobWriter.
func (b *storedBlob) ReadFrom(r io.Reader) (int64, error) { return b.dst.readFrom(r) }

// Reset implements BlobWriter.
func (b *storedBlob) Reset() error {
	if b.noted > 0 {
		b.noted = 0
		b.w.journal.prefix(b.m, 0)
	}
	return b.dst.reset()
}

// Commit implements BlobWriter.
func (b *storedBlob) Commit() error {
	if err := b.dst.finish(); err != nil {
		return err
	}
	b.closed = true
	b.dst.release()
	b.w.settle(b.m, written)
	b.w.journal.complete(b.m)
	return nil
}

// Close implements BlobWriter.
func (b *storedBlob) Close() error {
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
