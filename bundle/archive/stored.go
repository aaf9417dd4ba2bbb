package archive

import (
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"sync"
)

// pieceSize is the number of bytes of one read or write: eight blocks.
const pieceSize = 8 * blockSize

// pieceBuffer is the size of a buffer for a piece with its block headers, and an entry's
// head and padding.
const pieceBuffer = pieceSize + 8*blockHeaderLen + 2<<10

// buffers is a pool of piece buffers.
type buffers struct{ pool sync.Pool }

func (b *buffers) get() *[]byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return p
	}
	p := make([]byte, pieceBuffer)
	return &p
}

func (b *buffers) put(p *[]byte) { b.pool.Put(p) }

// storedWriter writes one stored entry to its place.
type storedWriter struct {
	dst io.WriterAt
	off int64 // offset of the next byte in the file
	buf []byte
}

func (w *storedWriter) flush() error {
	n, err := w.dst.WriteAt(w.buf, w.off)
	w.off += int64(n)
	w.buf = w.buf[:0]
	return err
}

// writeStored copies exactly m.Size bytes from r to m's place. It checks that they hash to
// m.Digest, if there is one, and that r ends there.
func writeStored(dst io.WriterAt, m *Member, r io.Reader, pool *buffers) error {
	head, err := headFrame(m.Name, m.Size)
	if err != nil {
		return err
	}
	p := pool.get()
	defer pool.put(p)
	w := &storedWriter{dst: dst, off: m.Offset, buf: append((*p)[:0], head...)}
	if m.Size > 0 {
		w.buf = append(w.buf, rawFrameHeader...)
	}
	sum := sumOf(r)
	for left := m.Size; left > 0; {
		n := int(min(left, blockSize))
		left -= int64(n)
		w.buf = appendBlockHeader(w.buf, n, left == 0)
		data := w.buf[len(w.buf) : len(w.buf)+n]
		if got, err := io.ReadFull(r, data); err != nil {
			return shortRead(m, m.Size-left-int64(n-got), err)
		}
		sum.Write(data)
		w.buf = w.buf[:len(w.buf)+n]
		if len(w.buf) >= pieceSize {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	if err := checkEnd(m, r, sum); err != nil {
		return err
	}
	w.buf = append(w.buf, paddingFrame(m.Size)...)
	return w.flush()
}

// shortRead describes an early end of the content; it returns other errors unchanged, for
// the caller's checks.
func shortRead(m *Member, got int64, err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return &Error{Code: ErrSize, Member: m.Name, Offset: noOffset, Err: io.ErrUnexpectedEOF,
			Detail: "content ends after " + byteCount(got) + " of " + byteCount(m.Size)}
	}
	return err
}

// checkEnd checks that r ends here and that its content hashes to the entry's digest.
func checkEnd(m *Member, r io.Reader, sum hash.Hash) error {
	var more [1]byte
	for range 100 { // a reader may return 0 bytes without an error, but not forever
		n, err := r.Read(more[:])
		switch {
		case n > 0:
			return fault(ErrSize, m.Name, noOffset, "content is longer than %s", byteCount(m.Size))
		case err == io.EOF:
			return checkSum(m, sum)
		case err != nil:
			return err
		}
	}
	return io.ErrNoProgress
}

func checkSum(m *Member, sum hash.Hash) error {
	if _, ok := sum.(checkedSum); ok {
		return nil
	}
	if got := digestPrefix + hex.EncodeToString(sum.Sum(nil)); m.Digest != "" && got != m.Digest {
		return fault(ErrDigest, m.Name, noOffset, "content is %s", got)
	}
	return nil
}

// interruptible is a reader that fails when its context has ended.
type interruptible struct {
	r    io.Reader
	stop func() error // the context's Err
}

func (i interruptible) Read(p []byte) (int, error) {
	if err := i.stop(); err != nil {
		return 0, err
	}
	return i.r.Read(p)
}
