package archive

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Reader reads one archive in place. Its methods may be used by several
// goroutines at once.
type Reader struct {
	file     *os.File
	members  []Member
	names    map[string]int
	pool     buffers
	decoders sync.Pool // of *zstd.Decoder
}

// Open opens the archive at path and checks its end and index: the file is laid
// out as the format prescribes. Nothing is said about the content of members;
// that is checked where it is read. Errors that concern the format are *Error.
func Open(path string) (*Reader, error) {
	// Stat comes first: opening a FIFO would wait for its writer.
	if fi, err := os.Stat(path); err != nil {
		return nil, err
	} else if !fi.Mode().IsRegular() {
		return nil, fault(ErrFormat, "", noOffset, "%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r := &Reader{file: f, names: make(map[string]int)}
	if err := r.load(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	for i := range r.members {
		r.names[r.members[i].Name] = i
	}
	return r, nil
}

// load reads and checks everything that lies outside the members.
func (r *Reader) load() error {
	fi, err := r.file.Stat()
	if err != nil {
		return err
	}
	size := fi.Size()
	first := make([]byte, min(size, int64(len(rawFrameHeader))))
	if err := r.readAt(first, 0); err != nil {
		return err
	}
	if string(first) != rawFrameHeader {
		return fault(ErrFormat, "", 0, "not a bundle archive")
	}
	if size < int64(trailerLen+skippableLen)+rawFrameLen(endData) {
		return fault(ErrTruncated, "", size, "the file ends early")
	}
	tail := make([]byte, trailerLen)
	if err := r.readAt(tail, size-int64(trailerLen)); err != nil {
		return err
	}
	offset, _, err := parseTrailer(tail, size)
	if err != nil {
		return err
	}
	frameAt := offset - skippableLen
	frame := make([]byte, size-frameAt)
	if err := r.readAt(frame, frameAt); err != nil {
		return err
	}
	if r.members, err = parseIndexFrame(frame, frameAt); err != nil {
		return err
	}
	want := endFrame()
	got := make([]byte, len(want))
	endAt := frameAt - int64(len(want))
	if err := r.readAt(got, endAt); err != nil {
		return err
	}
	if i := differ(got, want); i >= 0 {
		return fault(ErrEnd, "", endAt+int64(i), "the tar's end is damaged")
	}
	return nil
}

// Close closes the file. Blobs that are still open can no longer be read.
func (r *Reader) Close() error { return r.file.Close() }

// Members lists the archive's members in file order.
func (r *Reader) Members() []Member { return slices.Clone(r.members) }

// slot is the signature slot, which every index has.
func (r *Reader) slot() *Member { return &r.members[r.names[slotName]] }

// Blob opens the blob with this digest. What is read is hashed; where the end
// would be, a wrong blob gives an *Error that names it instead of io.EOF, so
// nothing of a blob may be used before its end was seen. The size is in bytes.
// A blob that is not there is ErrMissing.
func (r *Reader) Blob(digest string) (io.ReadCloser, int64, error) {
	if err := checkDigest(digest); err != nil {
		return nil, 0, fault(ErrMissing, "", noOffset, "%q: %v", digest, err)
	}
	name := blobName(digest)
	i, ok := r.names[name]
	if !ok {
		return nil, 0, fault(ErrMissing, name, noOffset, "the archive has no such blob")
	}
	b, err := r.open(&r.members[i])
	if err != nil {
		return nil, 0, err
	}
	return b, r.members[i].Size, nil
}

// File gives the content of "oci-layout" or "index.json", checked against the
// index. Both are unsigned: index.json is worth what its digest is compared with.
func (r *Reader) File(name string) ([]byte, error) {
	if name != layoutName && name != indexName {
		return nil, fault(ErrMissing, name, noOffset, "not a file of the archive")
	}
	return r.content(&r.members[r.names[name]])
}

// Signatures gives the lines of the signature slot, each a JSON object and a
// line feed; none for an unsigned archive.
func (r *Reader) Signatures() ([]byte, error) {
	slot, err := r.content(r.slot())
	if err != nil {
		return nil, err
	}
	lines, err := parseSlot(slot)
	if err != nil {
		return nil, err
	}
	return lines, nil
}

// content reads a member that the format keeps small.
func (r *Reader) content(m *Member) ([]byte, error) {
	b, err := r.open(m)
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	buf.Grow(int(m.Size))
	_, err = b.WriteTo(&buf)
	return buf.Bytes(), errors.Join(err, b.Close())
}

// readAt fills p from the file at off.
func (r *Reader) readAt(p []byte, off int64) error {
	n, err := r.file.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == io.EOF {
		return fault(ErrTruncated, "", off+int64(n), "the file became shorter while it was read")
	}
	return err
}

// decoder gives a decoder for hostile input: one thread, bounded window.
func (r *Reader) decoder(src io.Reader) (*zstd.Decoder, error) {
	if d, ok := r.decoders.Get().(*zstd.Decoder); ok {
		return d, d.Reset(src)
	}
	return newDecoder(src)
}

func newDecoder(src io.Reader) (*zstd.Decoder, error) {
	return zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow))
}

// differ gives the first place where two slices of one length differ, else -1.
func differ(a, b []byte) int {
	if bytes.Equal(a, b) {
		return -1
	}
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}
