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
}

// state is the progress of a stored blob.
type state int

const (
	missing state = iota
	writing
	written
)

// Writer writes one archive to partial files, which Close renames to their names.
type Writer struct {
	layout  *Layout
	path    string
	workers int
	lock    *pathLock
	file    output
	pool    buffers

	mu          sync.Mutex
	closed      bool
	compressing bool
	members     []Member         // the index so far
	places      map[string]int   // digest of a stored blob → members
	states      map[string]state // by digest, of the stored blobs
	next        int              // index of the first compressed entry not in the file yet
	end         int64            // offset at which it begins
}

// Create starts an archive at path with layout l, writes its head, and allocates the space
// of the stored blobs. Until Close the file has the name .name.part in the same directory;
// the one of a killed run is replaced. With a volume size the archive is written as
// path.001, path.002 and so on, each under such a name until Close. A second Writer of the
// same path fails with ErrBusy and the pid of the holder.
func Create(path string, l *Layout, o WriteOptions) (*Writer, error) {
	if fi, err := os.Stat(path); err == nil && !fi.Mode().IsRegular() {
		return nil, fault(ErrInput, "", noOffset, "%s exists and is not a regular file", path)
	}
	lock, err := lockPath(path)
	if err != nil {
		return nil, err
	}
	w := &Writer{layout: l, path: path, lock: lock, members: l.Members(),
		places: make(map[string]int), states: make(map[string]state), next: l.compressed, end: l.storedEnd}
	if w.workers = o.Workers; w.workers <= 0 {
		w.workers = runtime.GOMAXPROCS(0)
	}
	w.workers = min(w.workers, maxWorkers)
	for i := len(l.small) + 1; i < l.compressed; i++ {
		w.places[w.members[i].Digest] = i
	}
	if err := w.begin(o); err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return w, nil
}

// begin creates the partial file with all content that is already known.
func (w *Writer) begin(o WriteOptions) (err error) {
	slot, err := slotOf(o.Signatures)
	if err != nil {
		return err
	}
	if w.file, err = newOutput(w.path, w.layout.MaxSize(), o.VolumeOptions); err != nil {
		return err
	}
	if err := w.file.reserve(w.layout.storedEnd); err != nil {
		return fmt.Errorf("reserve %d bytes for %s: %w", w.layout.storedEnd, w.path, err)
	}
	for i, data := range append(w.layout.small[:len(w.layout.small):len(w.layout.small)], slot) {
		if err := writeStored(w.file, &w.members[i], bytes.NewReader(data), &w.pool); err != nil {
			return err
		}
	}
	return nil
}

// WriteStored copies the stored blob with this digest from r to its place and checks size
// and digest; for Checked content, only the size. Different blobs may be written
// concurrently. After an error the same blob may be written again. Errors of r are returned
// unchanged; wrong content is ErrSize or ErrDigest. A blob that is not stored in the layout
// is ErrUnexpected, one that is already written ErrDuplicate.
func (w *Writer) WriteStored(ctx context.Context, digest string, r io.Reader) error {
	w.mu.Lock()
	i, ok := w.places[digest]
	was := w.states[digest]
	if ok && was == missing && !w.closed {
		w.states[digest] = writing
	}
	closed := w.closed
	w.mu.Unlock()
	switch {
	case closed:
		return os.ErrClosed
	case !ok:
		return fault(ErrUnexpected, "", noOffset, "the layout stores no blob %q", digest)
	case was != missing:
		return fault(ErrDuplicate, blobName(digest), noOffset, "the blob is already written")
	}
	src := io.Reader(interruptible{r, ctx.Err})
	if _, ok := r.(Checked); ok {
		src = Checked{io.NopCloser(src)}
	}
	err := writeStored(w.file, &w.members[i], src, &w.pool)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.states[digest] = written
	if err != nil {
		w.states[digest] = missing
	}
	return err
}

// Opener opens the content of a blob. It may wait until the blob has arrived, and must
// return when ctx ends.
type Opener func(ctx context.Context, digest string) (io.ReadCloser, error)

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

// commit records that the compressed entry i is complete in the file and checked.
func (w *Writer) commit(i int, length int64, xxh64 string) {
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
	tail := endFrame()
	tail = appendIndexFrame(tail, w.end+int64(len(tail)), w.members)
	if _, err := w.file.WriteAt(tail, w.end); err != nil {
		return err
	}
	if err := w.file.publish(ctx, w.end+int64(len(tail))); err != nil {
		return err
	}
	w.closed = true
	w.lock.release()
	return nil
}

// Abort removes the partial file. After Close it does nothing.
func (w *Writer) Abort() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	defer w.lock.release()
	if w.file == nil {
		return nil
	}
	return w.file.discard()
}
