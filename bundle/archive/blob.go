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

// source gives the data of one member in slices that stay valid until the next
// call, then io.EOF once every byte around the data was found right.
type source interface {
	next() ([]byte, error)
	close()
}

// blob reads one member through its source and checks size and digest. It may be
// closed while another goroutine reads it, as happens to what is sent over a
// connection that breaks: closing waits for that read.
type blob struct {
	mu   sync.Mutex
	r    *Reader
	m    *Member
	src  source
	sum  hash.Hash
	left int64
	cur  []byte
	err  error // what every further read gives
}

// open begins to read a member: its header frame is checked here.
func (r *Reader) open(m *Member) (*blob, error) {
	want, err := headFrame(m.Name, m.Size)
	if err != nil {
		return nil, err
	}
	if err := r.compare(m, m.Offset, want, ErrHeader, "the tar header is damaged"); err != nil {
		return nil, r.volumes.where(m, err)
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

// compare checks that the file has these bytes at off.
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

// padding checks the frame of a member's padding.
func (r *Reader) padding(m *Member) error {
	want := paddingFrame(m.Size)
	return r.compare(m, m.Offset+m.Length-int64(len(want)), want, ErrPadding, "the tar padding is damaged")
}

// advance takes the next slice of data; at the end it judges the whole.
func (b *blob) advance() error {
	for b.err == nil && len(b.cur) == 0 {
		b.cur, b.err = b.src.next()
		b.left -= int64(len(b.cur))
		if b.m.Digest != "" {
			b.sum.Write(b.cur)
		}
		switch {
		case b.left < 0:
			b.err = fault(ErrSize, b.m.Name, noOffset, "content goes on after %s", byteCount(b.m.Size))
		case b.err == io.EOF && b.left > 0:
			b.err = fault(ErrSize, b.m.Name, noOffset, "content ends %s early", byteCount(b.left))
		case b.err == io.EOF:
			if err := checkSum(b.m, b.sum); err != nil {
				b.err = err
			}
		}
		if b.err != nil {
			b.cur, b.err = nil, b.r.volumes.where(b.m, b.err)
		}
	}
	return b.err
}

// Uncheck leaves the digest to whoever reads: the size and what lies around the data
// are checked all the same.
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

// WriteTo implements io.WriterTo: no copy between the file's buffer and w.
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

// Close gives the buffers back.
func (b *blob) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.src != nil {
		b.src.close()
		b.src, b.cur, b.err = nil, nil, os.ErrClosed
	}
	return nil
}

// storedSource reads a raw frame, a piece of blocks at a time.
type storedSource struct {
	r    *Reader
	m    *Member
	buf  *[]byte
	cur  []byte // what was read and not given yet, block headers among it
	off  int64  // of the file, where cur ends
	left int64  // data not given yet
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

// fill reads the next blocks, and the frame's header before the first.
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

// compressedSource decodes the data frames of a compressed member, and hashes
// them as they lie in the file.
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

// scanBuffer is how much of a compressed member is read at once.
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

// end judges what surrounds the data. It gives io.EOF when all of it is right.
func (s *compressedSource) end() error {
	if s.scan.skippable {
		return fault(ErrFrame, s.m.Name, noOffset, "a skippable frame lies among the data")
	}
	if got := hexSum(s.raw); got != s.m.XXH64 {
		return fault(ErrFrame, s.m.Name, noOffset, "the compressed bytes have checksum %s, the index says %s", got, s.m.XXH64)
	}
	if err := s.r.padding(s.m); err != nil {
		return err
	}
	return io.EOF
}

// broken names the member in what the scanner or the decoder found.
func (s *compressedSource) broken(err error) error {
	var e *Error
	if errors.As(err, &e) {
		named := *e
		named.Member, named.Offset = s.m.Name, s.m.Offset+headLen+e.Offset
		if named.Code == ErrTruncated { // the file goes on, the member does not
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
