package archive

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Reader reads one archive in place. Its methods may be called concurrently.
type Reader struct {
	file     readerAtCloser
	size     int64      // of the complete archive, in bytes
	volumes  *volumeSet // the same as file, if the archive is in volumes; else nil
	path     string     // path of the file, or of the first volume
	members  []Member
	names    map[string]int
	pool     buffers
	decoders sync.Pool // of *zstd.Decoder
}

type readerAtCloser interface {
	io.ReaderAt
	io.Closer
}

// Open opens the archive at path and checks that its end and index follow the format. An
// archive in volumes is opened by the name of its first volume. The content of entries is
// not checked here but when it is read. Errors about the format are *Error.
func Open(path string) (*Reader, error) {
	r := &Reader{names: make(map[string]int)}
	if err := r.openFile(path); err != nil {
		return nil, err
	}
	if err := r.load(); err != nil {
		return nil, errors.Join(r.volumes.addVolume(nil, err), r.file.Close())
	}
	for i := range r.members {
		r.names[r.members[i].Name] = i
	}
	return r, nil
}

// openFile opens the file or the volumes.
func (r *Reader) openFile(path string) error {
	base, i, ok := volumeName(path)
	if ok && i > 0 {
		if _, err := readTable(base); err == nil {
			return &Error{Code: ErrInput, Volume: filepath.Base(path), Offset: noOffset,
				Detail: "not the first volume", Advice: "use the first: " + base + volumeSuffix(0)}
		}
	}
	if ok && i == 0 {
		set, err := openVolumes(base)
		if err == nil {
			r.file, r.volumes, r.size = set, set, set.table.Size
			return nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return err
		}
		// Without a table it may be a complete archive of this name.
		if oerr := r.openOne(path); oerr != nil || r.load() == nil {
			return oerr
		}
		return errors.Join(&Error{Code: ErrVolume, Volume: filepath.Base(base) + tableSuffix, Offset: noOffset,
			Detail: "the table of volumes is missing",
			Advice: "copy it too; without it: cat " + base + ".[0-9][0-9][0-9] > " + base}, r.file.Close())
	}
	return r.openOne(path)
}

func (r *Reader) openOne(path string) error {
	// Stat first: opening a FIFO would wait for its writer.
	if fi, err := os.Stat(path); err != nil {
		return err
	} else if !fi.Mode().IsRegular() {
		e := fault(ErrFormat, "", noOffset, "not a regular file")
		if fi.IsDir() {
			e.Detail = "a folder"
		}
		e.Advice = wantBundle
		return e
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	fi, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	r.file, r.size, r.path = f, fi.Size(), path
	return nil
}

// wantBundle is the advice for a file that is not a bundle.
const wantBundle = "specify a bundle: NAME.tar.zst, or NAME.tar.zst.001 for a bundle in volumes"

// Size is the size of the complete archive in bytes, all volumes together.
func (r *Reader) Size() int64 { return r.size }

// load reads and checks everything outside the entries.
func (r *Reader) load() error {
	size := r.size
	first := make([]byte, min(size, int64(len(rawFrameHeader))))
	if err := r.readAt(first, 0); err != nil {
		return err
	}
	if string(first) != rawFrameHeader {
		e := fault(ErrFormat, "", 0, "not a bundle archive")
		e.Advice = wantBundle + "; if it is a bundle, copy it again"
		if base, ok := strings.CutSuffix(r.path, tableSuffix); ok {
			e = fault(ErrFormat, "", noOffset, "the table of volumes, not a volume")
			e.Advice = "use the first volume: " + base + volumeSuffix(0)
		}
		return e
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

// Members lists the archive's entries in file order.
func (r *Reader) Members() []Member { return slices.Clone(r.members) }

// slot returns the signature slot, which every valid index has.
func (r *Reader) slot() *Member { return &r.members[r.names[slotName]] }

// Blob opens the blob with this digest and returns its size in bytes. The content is hashed
// while it is read: if it is wrong, the last Read returns an *Error instead of io.EOF.
// Callers must not use any content before they have read it to the end. A missing blob is
// ErrMissing.
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

// BlobAt opens the blob with this digest at or before off, and returns the actual offset. A
// compressed blob is opened at its beginning. The content is not checked against the
// digest: this is for callers that know digests of the blob's parts.
func (r *Reader) BlobAt(digest string, off int64) (rc io.ReadCloser, at int64, err error) {
	i, ok := r.names[blobName(digest)]
	if !ok {
		return nil, 0, fault(ErrMissing, blobName(digest), noOffset, "the archive has no such blob")
	}
	m := &r.members[i]
	if off < 0 || off > m.Size {
		return nil, 0, fault(ErrSize, m.Name, noOffset, "byte %d is outside the blob", off)
	}
	b, err := r.open(m)
	if err != nil {
		return nil, 0, err
	}
	b.Uncheck()
	if src, ok := b.src.(*storedSource); ok && off >= blockSize && off < m.Size {
		blocks := off / blockSize
		at = blocks * blockSize
		b.left, src.left = m.Size-at, m.Size-at
		src.off += int64(len(rawFrameHeader)) + blocks*(blockHeaderLen+blockSize)
	}
	return b, at, nil
}

// File returns the content of "oci-layout" or "index.json", checked against the index.
// Neither is signed: the caller must verify the digest in index.json.
func (r *Reader) File(name string) ([]byte, error) {
	if name != layoutName && name != indexName {
		return nil, fault(ErrMissing, name, noOffset, "not a file in the archive")
	}
	return r.content(&r.members[r.names[name]])
}

// Signatures returns the lines of the signature slot, each a JSON object and a line feed;
// empty for an unsigned archive.
func (r *Reader) Signatures() ([]byte, error) {
	slot, err := r.content(r.slot())
	if err != nil {
		return nil, err
	}
	lines, err := parseSlot(slot)
	if err != nil {
		return nil, r.volumes.addVolume(r.slot(), err)
	}
	return lines, nil
}

// content reads an entry whose size the format limits.
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
		return fault(ErrTruncated, "", off+int64(n), "the file was truncated while it was read")
	}
	return err
}

// decoder returns a decoder for untrusted input: one thread, limited window.
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

// differ returns the first index at which two slices of the same length differ, or -1.
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
