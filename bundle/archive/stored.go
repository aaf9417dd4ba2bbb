package archive

import (
	"context"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"sync"
)

// pieceSize is the number of bytes of one read or write: eight blocks.
const pieceSize = 8 * blockSize

// chunkBuffers is a pool of buffers for a chunk of content, or its frame.
type chunkBuffers struct{ pool sync.Pool }

func (b *chunkBuffers) get() *[]byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return p
	}
	p := make([]byte, 0, chunkSize+frameOverhead)
	return &p
}

func (b *chunkBuffers) put(p *[]byte) { b.pool.Put(p) }

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

// storedWriter writes one stored entry to its place, in order, from any number of readers.
type storedWriter struct {
	dst  io.WriterAt
	m    *Member
	pool *buffers
	page *[]byte // the buffer from the pool
	buf  []byte  // what is not in the file yet, in page
	off  int64   // offset in the file at which buf belongs
	sum  hash.Hash
	have int64 // bytes of content received
	// note, if set, is told after each write how much of the content is in the file.
	note func(kept int64)
}

// newStoredWriter starts entry m. The caller must call release.
func newStoredWriter(dst io.WriterAt, m *Member, sum hash.Hash, pool *buffers) (*storedWriter, error) {
	w := &storedWriter{dst: dst, m: m, sum: sum, pool: pool, page: pool.get()}
	if err := w.reset(); err != nil {
		w.release()
		return nil, err
	}
	return w, nil
}

func (w *storedWriter) release() {
	if w.page != nil {
		w.pool.put(w.page)
		w.page, w.buf = nil, nil
	}
}

// reset starts over.
func (w *storedWriter) reset() error {
	head, err := headFrame(w.m.Name, w.m.Size)
	if err != nil {
		return err
	}
	w.buf = append((*w.page)[:0], head...)
	if w.m.Size > 0 {
		w.buf = append(w.buf, rawFrameHeader...)
	}
	w.off, w.have = w.m.Offset, 0
	w.sum.Reset()
	return nil
}

// resume continues after n bytes of content, complete blocks, which are in the file and in
// the hash.
func (w *storedWriter) resume(n int64) {
	w.buf = (*w.page)[:0]
	w.off = w.m.Offset + headLen + int64(len(rawFrameHeader)) + n/blockSize*(blockSize+blockHeaderLen)
	w.have = n
}

// readFrom adds content until r ends. It returns errors of r unchanged; what was read before
// counts. Content beyond the entry's size is ErrSize.
func (w *storedWriter) readFrom(r io.Reader) (n int64, err error) {
	for idle := 0; idle < maxIdleReads; idle++ {
		left := w.m.Size - w.have
		if left == 0 {
			return n, endOf(w.m, r)
		}
		in := w.have % blockSize // bytes of the current block in the buffer
		if in == 0 && len(w.buf) >= pieceSize {
			if err := w.flush(); err != nil {
				return n, err
			}
		}
		at := len(w.buf)
		if in == 0 {
			at += blockHeaderLen
		}
		k, err := r.Read(w.buf[at : at+int(min(left, blockSize-in))])
		if k > 0 {
			if in == 0 {
				w.buf = appendBlockHeader(w.buf, int(min(left, blockSize)), left <= blockSize)
			}
			w.buf = w.buf[:at+k]
			w.sum.Write(w.buf[at:])
			w.have += int64(k)
			n += int64(k)
			idle = -1
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
	return n, io.ErrNoProgress
}

// maxIdleReads limits the reads in a row that return neither bytes nor an error.
const maxIdleReads = 100

// flush writes the buffer to the file. It is called between blocks and at the end.
func (w *storedWriter) flush() error {
	if _, err := w.dst.WriteAt(w.buf, w.off); err != nil {
		return err // the buffer stays: the write can be repeated
	}
	w.off += int64(len(w.buf))
	w.buf = w.buf[:0]
	if w.note != nil && w.have < w.m.Size {
		w.note(w.have)
	}
	return nil
}

// spill writes the buffer to the file, in the middle of a block too, and keeps it.
func (w *storedWriter) spill() error {
	_, err := w.dst.WriteAt(w.buf, w.off)
	return err
}

// finish checks size and digest and writes the rest.
func (w *storedWriter) finish() error {
	if w.have < w.m.Size {
		return shortRead(w.m, w.have, io.ErrUnexpectedEOF)
	}
	if err := checkSum(w.m, w.sum); err != nil {
		return err
	}
	w.buf = append(w.buf, paddingFrame(w.m.Size)...)
	return w.flush()
}

// writeStored copies exactly m.Size bytes from r to m's place. It checks that they hash to
// m.Digest, if there is one, and that r ends there.
func writeStored(dst io.WriterAt, m *Member, r io.Reader, pool *buffers) error {
	w, err := newStoredWriter(dst, m, sumOf(r), pool)
	if err != nil {
		return err
	}
	defer w.release()
	if _, err := w.readFrom(r); err != nil {
		return err
	}
	return w.finish()
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

// endOf checks that r ends here.
func endOf(m *Member, r io.Reader) error {
	var more [1]byte
	for range maxIdleReads {
		n, err := r.Read(more[:])
		switch {
		case n > 0:
			return fault(ErrSize, m.Name, noOffset, "content is longer than %s", byteCount(m.Size))
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
	return io.ErrNoProgress
}

// checkEnd checks that r ends here and that its content hashes to the entry's digest.
func checkEnd(m *Member, r io.Reader, sum hash.Hash) error {
	if err := endOf(m, r); err != nil {
		return err
	}
	return checkSum(m, sum)
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

// stoppable returns r that ends with ctx and is still Checked if r is.
func stoppable(ctx context.Context, r io.Reader) io.Reader {
	src := io.Reader(interruptible{r, ctx.Err})
	if _, ok := r.(Checked); ok {
		return Checked{io.NopCloser(src)}
	}
	return src
}
