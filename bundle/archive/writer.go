package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// maxWorkers limits the compressors and their memory: each takes about six MiB.
const maxWorkers = 8

// WriteOptions are the options of a Writer. Workers and Sealing change no byte of the
// archive.
type WriteOptions struct {
	Workers int // concurrent compressors; 0 means one per CPU, at most 8
	VolumeOptions
	// Signatures is the content of the signature slot: JSON objects, one per line.
	Signatures []byte
	// Resume keeps a journal beside the partial file, so that a later Writer with Resume and
	// the same layout continues what Suspend or a kill left.
	Resume bool
}

// state is the progress of a blob.
type state int

const (
	missing state = iota
	writing
	written
)

// Writer writes one archive to partial files, which Close renames to their names.
type Writer struct {
	layout   *Layout
	path     string
	workers  int
	lock     *pathLock
	file     output
	pool     buffers
	chunks   chunkBuffers
	back     *Reader            // reads what is in the partial file
	journal  *journal           // nil without Resume
	encoders chan *zstd.Encoder // free ones; nil stands for one that is not made yet
	claims   *claims            // what an earlier Writer left, as far as it is not checked yet; nil if nothing

	mu          sync.Mutex
	closed      bool
	compressing bool
	members     []Member          // the index so far
	places      map[string]int    // digest of a blob → members
	states      map[string]state  // by digest, of the blobs
	staged      map[string]Member // compressed blobs that wait for their turn
	changed     chan struct{}     // closed when staged changes
	next        int               // index of the first compressed entry not in the file yet
	end         int64             // offset at which it begins
}

// Create starts an archive at path with layout l, writes its head, and allocates the space
// of the stored blobs. Until Close the file has the name path.partial. That of a killed run is
// replaced, unless o.Resume is set and it has the same layout. With a volume size the archive
// is written as path.001, path.002 and so on, each under such a name until Close. A second
// Writer of the same path fails with ErrBusy and the pid of the holder.
func Create(path string, l *Layout, o WriteOptions) (*Writer, error) {
	if fi, err := os.Stat(path); err == nil && !fi.Mode().IsRegular() {
		return nil, fault(ErrInput, "", noOffset, "%s exists and is not a regular file", path)
	}
	lock, err := lockPath(path)
	if err != nil {
		return nil, err
	}
	w := &Writer{layout: l, path: path, lock: lock, members: l.Members(), encoders: make(chan *zstd.Encoder, maxWorkers),
		places: make(map[string]int), states: make(map[string]state), staged: make(map[string]Member), changed: make(chan struct{}),
		next: l.compressed, end: l.storedEnd}
	if w.workers = o.Workers; w.workers <= 0 {
		w.workers = runtime.GOMAXPROCS(0)
	}
	w.workers = min(w.workers, maxWorkers)
	for range w.workers {
		w.encoders <- nil // made when one is needed
	}
	for i := len(l.small) + 1; i < len(w.members); i++ {
		w.places[w.members[i].Digest] = i
	}
	if err := w.begin(o); err != nil {
		_, kept := w.Suspend() // what an earlier Writer left is not lost
		return nil, errors.Join(err, kept)
	}
	return w, nil
}

// begin creates or continues the partial file with all content that is already known.
func (w *Writer) begin(o WriteOptions) (err error) {
	slot, err := slotOf(o.Signatures)
	if err != nil {
		return err
	}
	head := journalHeadOf(w.layout, o.VolumeOptions)
	if o.Resume {
		if w.claims, err = readClaims(w.path); err != nil {
			return err
		}
		if w.claims != nil && w.claims.head != head {
			w.claims = nil
		}
	}
	if w.claims == nil {
		if err := removeJournal(w.path); err != nil {
			return err
		}
	}
	if w.file, err = newOutput(w.path, w.layout.MaxSize(), o.VolumeOptions, w.claims != nil); err != nil {
		return err
	}
	w.back = &Reader{file: noClose{w.file}, size: w.layout.MaxSize()}
	if err := w.file.reserve(w.layout.storedEnd); err != nil {
		return fmt.Errorf("reserve %d bytes for %s: %w", w.layout.storedEnd, w.path, err)
	}
	for i, data := range append(w.layout.small[:len(w.layout.small):len(w.layout.small)], slot) {
		if err := writeStored(w.file, &w.members[i], bytes.NewReader(data), &w.pool); err != nil {
			return err
		}
	}
	switch {
	case w.claims != nil:
		w.journal, err = continueJournal(w.path, w.claims)
	case o.Resume:
		w.journal, err = startJournal(w.path, head)
	}
	return err
}

// claim marks a blob as being written and returns its entry.
func (w *Writer) claim(digest string) (*Member, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i, ok := w.places[digest]
	switch {
	case w.closed:
		return nil, os.ErrClosed
	case !ok:
		return nil, fault(ErrUnexpected, "", noOffset, "the layout has no blob %q", digest)
	case w.states[digest] != missing:
		return nil, fault(ErrDuplicate, blobName(digest), noOffset, "the blob is already written")
	}
	w.states[digest] = writing
	return &w.members[i], nil
}

// settle ends the writing of a blob.
func (w *Writer) settle(m *Member, s state) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.states[m.Digest] = s
	if w.claims != nil {
		delete(w.claims.stored, m.Digest)
		delete(w.claims.staged, m.Digest)
		delete(w.claims.prefixes, m.Digest)
	}
}

// WriteStored copies the stored blob with this digest from r to its place and checks size
// and digest; for Checked content, only the size. Different blobs may be written
// concurrently. After an error the same blob may be written again. Errors of r are returned
// unchanged; wrong content is ErrSize or ErrDigest. A blob that is not stored in the layout
// is ErrUnexpected, one that is already written ErrDuplicate.
func (w *Writer) WriteStored(ctx context.Context, digest string, r io.Reader) error {
	m, err := w.claim(digest)
	if err != nil {
		return err
	}
	if !m.Stored() {
		w.settle(m, missing)
		return fault(ErrUnexpected, "", noOffset, "the layout compresses the blob %q", digest)
	}
	if err := writeStored(w.file, m, stoppable(ctx, r), &w.pool); err != nil {
		w.settle(m, missing)
		return err
	}
	w.settle(m, written)
	w.journal.complete(m)
	return nil
}

// Opener opens the content of a blob. It may wait until the blob has arrived, and must
// return when ctx ends.
type Opener func(ctx context.Context, digest string) (io.ReadCloser, error)

// Recovered reports whether an earlier Writer wrote the blob with this digest completely. It
// reads and checks the blob; what is damaged is written again.
func (w *Writer) Recovered(ctx context.Context, digest string) (bool, error) {
	w.mu.Lock()
	var stored, staged bool
	var st Member
	if w.claims != nil {
		_, stored = w.claims.stored[digest]
		st, staged = w.claims.staged[digest]
	}
	w.mu.Unlock()
	if !stored && !staged {
		return false, nil
	}
	m, err := w.claim(digest)
	if err != nil {
		return false, err
	}
	switch {
	case m.Stored() && stored:
		err = w.check(ctx, m)
	case !m.Stored() && staged && st.Size == m.Size:
		err = w.checkStaged(ctx, &st)
	default:
		err = errors.New("of another kind")
	}
	if err != nil {
		w.settle(m, missing)
		return false, ctx.Err() // whatever is wrong with it, it is written again
	}
	if staged {
		w.ready(&st)
		return true, nil
	}
	w.settle(m, written)
	return true, nil
}

// check reads an entry back.
func (w *Writer) check(ctx context.Context, m *Member) error {
	b, err := w.back.open(m)
	if err != nil {
		return err
	}
	_, err = io.Copy(meter{stop: ctx.Err}, b)
	return errors.Join(err, b.Close())
}

// RecoverCompressed checks the compressed blobs that an earlier Writer wrote into the archive,
// in their order up to the first that is missing or damaged, and returns their digests. It must
// be called before other compressed blobs are written.
func (w *Writer) RecoverCompressed(ctx context.Context) ([]string, error) {
	if w.claims == nil {
		return nil, nil
	}
	var digests []string
	for _, c := range w.claims.compressed {
		if w.next == len(w.members) || c.Digest != w.members[w.next].Digest || c.Size != w.members[w.next].Size {
			break
		}
		c.Name, c.Offset = w.members[w.next].Name, w.end
		if err := w.check(ctx, &c); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			break
		}
		w.settle(&c, written)
		w.advance(w.next, c.Length, c.XXH64)
		digests = append(digests, c.Digest)
	}
	w.claims.compressed = nil
	return digests, nil
}

// WriteCompressed appends the compressed blobs in their order. open returns the reader for
// each digest, whose content is checked unless it is Checked. It may run concurrently with
// WriteStored. After an error, calling it again continues with the first missing blob.
func (w *Writer) WriteCompressed(ctx context.Context, open Opener) error {
	w.mu.Lock()
	if w.closed || w.compressing {
		defer w.mu.Unlock()
		if w.closed {
			return os.ErrClosed
		}
		return fault(ErrInput, "", noOffset, "the compressed blobs are already being written")
	}
	w.compressing = true
	from := w.next
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.compressing = false
		w.mu.Unlock()
	}()
	if from == len(w.members) {
		return nil
	}
	if open == nil {
		return fault(ErrMissing, w.members[from].Name, noOffset, "%d compressed blobs are not written, this is the first", len(w.members)-from)
	}
	c := newCompressor(w.workers)
	c.members, c.open, c.dst, c.off, c.commit = w.layout.members, open, w.file, w.end, w.commit
	return c.run(ctx, from, w.workers)
}

// commit records that the compressed entry i was written and checked.
func (w *Writer) commit(i int, length int64, xxh64 string) {
	w.advance(i, length, xxh64)
	w.journal.complete(&w.members[i])
}

// advance records that the compressed entry i is complete in the file.
func (w *Writer) advance(i int, length int64, xxh64 string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := &w.members[i]
	m.Offset, m.Length, m.XXH64 = w.end, length, xxh64
	w.end += length
	w.next = i + 1
}

// Missing lists the digests of the stored blobs that are not written yet, in file order.
func (w *Writer) Missing() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ds []string
	for i := len(w.layout.small) + 1; i < w.layout.compressed; i++ {
		if d := w.members[i].Digest; w.states[d] != written {
			ds = append(ds, d)
		}
	}
	return ds
}

// Close writes the compressed blobs that WriteCompressed has not written, the end and the
// index. It then syncs the file and renames it to its name. If stored blobs are missing, it
// returns ErrMissing. open may be nil if no compressed blob is left. After an error the
// caller may call Close again, or must call Abort.
func (w *Writer) Close(ctx context.Context, open Opener) error {
	if ds := w.Missing(); len(ds) > 0 {
		return fault(ErrMissing, blobName(ds[0]), noOffset, "%d stored blobs are not written, this is the first", len(ds))
	}
	if err := w.WriteCompressed(ctx, open); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	// A disk that fails is told before the archive gets its name.
	if err := w.journal.close(); err != nil {
		return err
	}
	w.journal = nil
	tail := endFrame()
	tail = appendIndexFrame(tail, w.end+int64(len(tail)), w.members)
	if _, err := w.file.WriteAt(tail, w.end); err != nil {
		return err
	}
	if err := w.file.publish(ctx, w.end+int64(len(tail))); err != nil {
		return err
	}
	w.closed = true
	defer w.lock.release()
	return removeJournal(w.path)
}

// Abort removes the partial file. After Close or Suspend it does nothing.
func (w *Writer) Abort() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	defer w.lock.release()
	errs := []error{w.journal.close()}
	if w.file != nil {
		errs = append(errs, w.file.discard(), removeJournal(w.path))
	}
	return errors.Join(errs...)
}

// Suspend ends the Writer and keeps the partial file for a later Writer with Resume. It
// returns how many bytes of content are kept; if there are none, nothing is left.
func (w *Writer) Suspend() (int64, error) {
	c, err := readClaims(w.path)
	if err != nil || c == nil || c.bytes() == 0 {
		return 0, errors.Join(err, w.Abort())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return 0, nil
	}
	w.closed = true
	defer w.lock.release()
	errs := []error{w.journal.close()}
	if w.file != nil {
		errs = append(errs, w.file.keep())
	}
	return c.bytes(), errors.Join(errs...)
}
