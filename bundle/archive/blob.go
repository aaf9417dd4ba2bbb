package archive

import (
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"os"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"
)

// source returns the data of one entry in slices that are valid until the next call. It
// returns io.EOF after it has also checked every byte around the data.
type source interface {
	next() ([]byte, error)
	close()
}

// blob reads one entry through its source and checks size and digest. It may be closed
// while another goroutine reads it, as happens with a request body when the connection
// breaks: Close waits for that read.
type blob struct {
	mu   sync.Mutex
	r    *Reader
	m    *Member
	src  source
	sum  hash.Hash
	left int64
	cur  []byte
	err  error // the error of every further read
}

// open opens an entry and checks its header frame.
func (r *Reader) open(m *Member) (*blob, error) {
	want, err := headFrame(m.Name, m.Size)
	if err != nil {
		return nil, err
	}
	if err := r.compare(m, m.Offset, want, ErrHeader, "the tar header is damaged"); err != nil {
		return nil, r.volumes.addVolume(m, err)
	}
	b := &blob{r: r, m: m, sum: sha256.New(), left: m.Size}
	if m.Stored() {
		b.src = &storedSource{r: r, m: m, buf: r.pool.get(), off: m.Offset + headLen, left: m.Size}
		return b, nil
	}
	if b.src, err = newCompressedSource(r, m); err != nil {
		return nil, err
	}
	return b, nil
}

// compare checks that the file has the bytes want at off.
func (r *Reader) compare(m *Member, off int64, want []byte, code Code, what string) error {
	got := make([]byte, len(want))
	if err := r.readAt(got, off); err != nil {
		return err
	}
	if i := differ(got, want); i >= 0 {
		return fault(code, m.Name, off+int64(i), "%s", what)
	}
	return nil
}

// padding checks the frame of an entry's padding.
func (r *Reader) padding(m *Member) error {
	want := paddingFrame(m.Size)
	return r.compare(m, m.Offset+m.Length-int64(len(want)), want, ErrPadding, "the tar padding is damaged")
}

// advance reads the next slice of data; at the end it checks size and digest.
func (b *blob) advance() error {
	for b.err == nil && len(b.cur) == 0 {
		b.cur, b.err = b.src.next()
		b.left -= int64(len(b.cur))
		if b.m.Digest != "" {
			b.sum.Write(b.cur)
		}
		switch {
		case b.left < 0:
			b.err = fault(ErrSize, b.m.Name, noOffset, "content is longer than %s", byteCount(b.m.Size))
		case b.err == io.EOF && b.left > 0:
			b.err = fault(ErrSize, b.m.Name, noOffset, "content ends %s early", byteCount(b.left))
		case b.err == io.EOF:
			if err := checkSum(b.m, b.sum); err != nil {
				b.err = err
			}
		}
		if b.err != nil {
			b.cur, b.err = nil, b.r.volumes.addVolume(b.m, b.err)
		}
	}
	return b.err
}

// Uncheck leaves checking the digest to the caller. The size and the bytes around the data
// are still checked.
func (b *blob) Uncheck() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sum = checkedSum{}
}

// Read implements io.Reader.
func (b *blob) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.advance(); err != nil {
		return 0, err
	}
	n := copy(p, b.cur)
	b.cur = b.cur[n:]
	return n, nil
}

// WriteTo implements io.WriterTo without a copy between the file's buffer and w.
func (b *blob) WriteTo(w io.Writer) (n int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		if err := b.advance(); err == io.EOF {
			return n, nil
		} else if err != nil {
			return n, err
		}
		k, err := w.Write(b.cur)
		n += int64(k)
		b.cur = b.cur[k:]
		if err != nil {
			return n, err
		}
	}
}

// Close returns the buffers to the pool.
func (b *blob) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.src != nil {
		b.src.close()
		b.src, b.cur, b.err = nil, nil, os.ErrClosed
	}
	return nil
}

// storedSource reads a raw frame, several blocks at a time.
type storedSource struct {
	r    *Reader
	m    *Member
	buf  *[]byte
	cur  []byte // bytes read but not returned yet, including block headers
	off  int64  // offset in the file at which cur ends
	left int64  // bytes of data not returned yet
}

func (s *storedSource) next() ([]byte, error) {
	if s.left == 0 {
		if err := s.r.padding(s.m); err != nil {
			return nil, err
		}
		return nil, io.EOF
	}
	if len(s.cur) == 0 {
		if err := s.fill(); err != nil {
			return nil, err
		}
	}
	n := min(s.left, blockSize)
	var want [blockHeaderLen]byte
	appendBlockHeader(want[:0], int(n), n == s.left)
	if string(s.cur[:blockHeaderLen]) != string(want[:]) {
		return nil, fault(ErrFrame, s.m.Name, s.off-int64(len(s.cur)), "a block header is damaged")
	}
	data := s.cur[blockHeaderLen : blockHeaderLen+n]
	s.cur = s.cur[blockHeaderLen+n:]
	s.left -= n
	return data, nil
}

// fill reads the next blocks, and before the first one the frame's header.
func (s *storedSource) fill() error {
	n := min(s.left, pieceSize)
	length := n + blockHeaderLen*((n+blockSize-1)/blockSize)
	first := s.left == s.m.Size
	if first {
		length += int64(len(rawFrameHeader))
	}
	s.cur = (*s.buf)[:length]
	if err := s.r.readAt(s.cur, s.off); err != nil {
		return err
	}
	s.off += length
	if first {
		if i := differ(s.cur[:len(rawFrameHeader)], []byte(rawFrameHeader)); i >= 0 {
			return fault(ErrFrame, s.m.Name, s.off-length+int64(i), "a frame header is damaged")
		}
		s.cur = s.cur[len(rawFrameHeader):]
	}
	return nil
}

func (s *storedSource) close() { s.r.pool.put(s.buf) }

// compressedSource decodes the data frames of a compressed entry and hashes the compressed
// bytes.
type compressedSource struct {
	r    *Reader
	m    *Member
	raw  *xxhash.Digest
	scan *frameScanner
	dec  *zstd.Decoder
	buf  *[]byte
}

func newCompressedSource(r *Reader, m *Member) (*compressedSource, error) {
	begin := m.Offset + headLen
	length := m.Length - minCompressedLen(m.Size)
	s := &compressedSource{r: r, m: m, raw: xxhash.New(), buf: r.pool.get()}
	frames := io.TeeReader(io.NewSectionReader(r.file, begin, length), s.raw)
	s.scan = newFrameScanner(frames, scanBuffer)
	var err error
	s.dec, err = r.decoder(s.scan)
	if err != nil {
		return nil, s.broken(err)
	}
	return s, nil
}

// scanBuffer is the read buffer for a compressed entry.
const scanBuffer = 256 << 10

func (s *compressedSource) next() ([]byte, error) {
	for {
		n, err := s.dec.Read((*s.buf)[:blockSize])
		if n > 0 {
			return (*s.buf)[:n], nil
		}
		if err == io.EOF {
			return nil, s.end()
		}
		if err != nil {
			return nil, s.broken(err)
		}
	}
}

// end checks the bytes around the data. It returns io.EOF if all are correct.
func (s *compressedSource) end() error {
	if s.scan.skippable {
		return fault(ErrFrame, s.m.Name, noOffset, "a skippable frame is between data frames")
	}
	if got := hexSum(s.raw); got != s.m.XXH64 {
		return fault(ErrFrame, s.m.Name, noOffset, "the compressed bytes have checksum %s, the index lists %s", got, s.m.XXH64)
	}
	if err := s.r.padding(s.m); err != nil {
		return err
	}
	return io.EOF
}

// broken adds the entry to an error of the scanner or the decoder.
func (s *compressedSource) broken(err error) error {
	var e *Error
	if errors.As(err, &e) {
		named := *e
		named.Member, named.Offset = s.m.Name, s.m.Offset+headLen+e.Offset
		if named.Code == ErrTruncated { // the entry is truncated, not the file
			named.Code = ErrFrame
		}
		return &named
	}
	return &Error{Code: ErrFrame, Member: s.m.Name, Offset: noOffset, Detail: "cannot be decompressed", Err: err}
}

func (s *compressedSource) close() {
	s.r.pool.put(s.buf)
	if s.dec != nil && s.dec.Reset(nil) == nil {
		s.r.decoders.Put(s.dec)
	}
}
