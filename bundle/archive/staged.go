package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"
)

// Compressed blobs have no place before those in front of them are compressed. Each is
// compressed into a file of its own as it arrives, in any order, and moves into the archive
// when it is its turn: neither the order of arrival nor a slow source holds up the others.

// stagedFolder is the folder of the compressed blobs that wait for their turn.
func stagedFolder(path string) string { return path + partialSuffix + ".staged" }

func stagedPath(path, digest string) string {
	return filepath.Join(stagedFolder(path), digest[len(digestPrefix):])
}

// stagedBlob compresses one blob into its file.
type stagedBlob struct {
	w      *Writer
	m      *Member
	file   *os.File
	page   *[]byte // the buffer of chunk
	chunk  []byte  // content that is not compressed yet
	sum    hash.Hash
	have   int64          // bytes of content received
	length int64          // bytes of frames in the file
	raw    *xxhash.Digest // of these
	noted  int64          // the prefix that the journal has
	closed bool
}

// stage starts to compress the claimed blob m, and continues what an earlier Writer left.
func (w *Writer) stage(ctx context.Context, m *Member, sum hash.Hash) (*stagedBlob, error) {
	s := &stagedBlob{w: w, m: m, sum: sum, raw: xxhash.New()}
	if err := os.MkdirAll(stagedFolder(w.path), 0o755); err != nil {
		return nil, err
	}
	var err error
	if s.file, err = os.OpenFile(stagedPath(w.path, m.Digest), os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return nil, err
	}
	s.page = w.chunks.get()
	s.chunk = *s.page
	w.mu.Lock()
	begin := claimed{}
	if w.claims != nil {
		begin = w.claims.prefixes[m.Digest]
	}
	w.mu.Unlock()
	if begin.prefix > 0 && s.resume(ctx, begin) == nil {
		return s, nil
	}
	return s, errors.Join(ctx.Err(), s.Reset())
}

// resume reads the frames of the blob's beginning back.
func (s *stagedBlob) resume(ctx context.Context, c claimed) error {
	if c.prefix%chunkSize != 0 || c.prefix > s.m.Size {
		return fault(ErrSize, s.m.Name, noOffset, "%d bytes staged", c.prefix)
	}
	n, raw, err := readFrames(ctx, io.NewSectionReader(s.file, 0, c.length), s.sum)
	if err != nil {
		return err
	}
	if n != c.prefix {
		return fault(ErrSize, s.m.Name, noOffset, "%d bytes staged, not %d", n, c.prefix)
	}
	s.have, s.noted, s.length, s.raw = n, n, c.length, raw
	return nil
}

// readFrames decodes frames into a hash. It returns the bytes of content and the checksum of
// the frames.
func readFrames(ctx context.Context, r io.Reader, sum io.Writer) (int64, *xxhash.Digest, error) {
	raw := xxhash.New()
	d, err := newDecoder(io.TeeReader(r, raw))
	if err != nil {
		return 0, nil, err
	}
	defer d.Close()
	n, err := io.Copy(io.MultiWriter(meter{stop: ctx.Err}, sum), d)
	return n, raw, err
}

// Have implements BlobWriter.
func (s *stagedBlob) Have() int64 { return s.have }

// Digest implements BlobWriter.
func (s *stagedBlob) Digest() string { return hex.EncodeToString(s.sum.Sum(nil)) }

// ReadFrom implements BlobWriter.
func (s *stagedBlob) ReadFrom(r io.Reader) (n int64, err error) {
	for idle := 0; idle < maxIdleReads; idle++ {
		left := s.m.Size - s.have
		if left == 0 {
			return n, endOf(s.m, r)
		}
		at := len(s.chunk)
		k, err := r.Read(s.chunk[at : at+int(min(left, chunkSize-int64(at)))])
		if k > 0 {
			s.chunk = s.chunk[:at+k]
			s.sum.Write(s.chunk[at:])
			s.have += int64(k)
			n += int64(k)
			idle = -1
		}
		if len(s.chunk) == chunkSize || s.have == s.m.Size && len(s.chunk) > 0 {
			if err := s.flush(); err != nil {
				return n, err
			}
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

// flush compresses the chunk and writes it.
func (s *stagedBlob) flush() error {
	enc, err := s.w.encoder()
	if err != nil {
		return err
	}
	page := s.w.chunks.get()
	defer s.w.chunks.put(page)
	out := enc.EncodeAll(s.chunk, *page)
	s.w.encoders <- enc
	if _, err := s.file.WriteAt(out, s.length); err != nil {
		return err
	}
	_, _ = s.raw.Write(out) // a hash never fails
	s.length += int64(len(out))
	s.chunk = s.chunk[:0]
	if s.have < s.m.Size {
		s.noted = s.have
		s.w.journal.staged(s.m, s.have, s.length)
	}
	return nil
}

// encoder returns a free encoder, whose number is limited.
func (w *Writer) encoder() (*zstd.Encoder, error) {
	if e := <-w.encoders; e != nil {
		return e, nil
	}
	e, err := newEncoder()
	if err != nil {
		w.encoders <- nil
	}
	return e, err
}

// Reset implements BlobWriter.
func (s *stagedBlob) Reset() error {
	if s.noted > 0 {
		s.noted = 0
		s.w.journal.prefix(s.m, 0)
	}
	s.sum.Reset()
	s.raw.Reset()
	s.chunk, s.have, s.length = s.chunk[:0], 0, 0
	return s.file.Truncate(0)
}

// Commit implements BlobWriter.
func (s *stagedBlob) Commit() error {
	if s.have < s.m.Size {
		return shortRead(s.m, s.have, io.ErrUnexpectedEOF)
	}
	if err := checkSum(s.m, s.sum); err != nil {
		return err
	}
	if len(s.chunk) > 0 || s.length == 0 { // its write failed, or the blob is empty and has a frame all the same
		if err := s.flush(); err != nil {
			return err
		}
	}
	if err := s.end(); err != nil {
		return err
	}
	m := *s.m
	m.Offset, m.Length, m.XXH64 = 0, s.length, hexSum(s.raw)
	s.w.ready(&m)
	return nil
}

// end closes the file, which stays, and releases the buffer.
func (s *stagedBlob) end() error {
	s.closed = true
	s.w.chunks.put(s.page)
	s.page, s.chunk = nil, nil
	return s.file.Close()
}

// Close implements BlobWriter.
func (s *stagedBlob) Close() error {
	if s.closed {
		return nil
	}
	err := s.end()
	s.w.settle(s.m, missing)
	return err
}

// ready records a staged blob.
func (w *Writer) ready(m *Member) {
	w.settle(m, written)
	w.journal.write(journalLine{Member: *m, Staged: true})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.staged[m.Digest] = *m
	close(w.changed)
	w.changed = make(chan struct{})
}

// checkStaged reads the staged blob that an earlier Writer completed.
func (w *Writer) checkStaged(ctx context.Context, m *Member) error {
	f, err := os.Open(stagedPath(w.path, m.Digest))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	sum := sha256.New()
	n, raw, err := readFrames(ctx, io.LimitReader(f, m.Length), sum)
	switch {
	case err != nil:
		return err
	case n != m.Size || hexSum(raw) != m.XXH64:
		return fault(ErrFrame, m.Name, noOffset, "not what was staged")
	}
	return checkSum(m, sum)
}

// WriteStaged moves the compressed blobs into the archive in their order, and waits for each
// until it was written with Blob or Write. It returns when all are there, or when ctx ends.
func (w *Writer) WriteStaged(ctx context.Context) error {
	for w.next < len(w.members) {
		m := w.members[w.next]
		for {
			w.mu.Lock()
			st, ok := w.staged[m.Digest]
			changed := w.changed
			w.mu.Unlock()
			if ok {
				m.Length, m.XXH64 = st.Length, st.XXH64
				break
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := w.unstage(ctx, &m); err != nil {
			return err
		}
	}
	return nil
}

// unstage copies the frames of one blob to the archive's end and removes its file.
func (w *Writer) unstage(ctx context.Context, m *Member) error {
	name := stagedPath(w.path, m.Digest)
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	head, err := headFrame(m.Name, m.Size)
	if err != nil {
		return err
	}
	out := io.NewOffsetWriter(w.file, w.end)
	if _, err := out.Write(head); err != nil {
		return err
	}
	raw := xxhash.New()
	page := w.pool.get()
	defer w.pool.put(page)
	n, err := io.CopyBuffer(struct{ io.Writer }{io.MultiWriter(meter{stop: ctx.Err}, raw, out)}, io.LimitReader(f, m.Length), *page)
	if err != nil {
		return err
	}
	if n != m.Length || hexSum(raw) != m.XXH64 {
		return fmt.Errorf("%s has changed since it was written", name)
	}
	if _, err := out.Write(paddingFrame(m.Size)); err != nil {
		return err
	}
	w.commit(w.next, minCompressedLen(m.Size)+m.Length, m.XXH64)
	return os.Remove(name)
}
