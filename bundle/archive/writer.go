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

// maxWorkers bounds the compressors, and with them memory: each takes about
// six MiB.
const maxWorkers = 8

// WriteOptions tune a Writer. They change no byte of the archive.
type WriteOptions struct {
	Workers int // compressors at once; 0 means one for each CPU, at most 8
	VolumeOptions
	// Signatures go into the signature slot: JSON objects, one a line.
	Signatures []byte
}

// state is how far a stored blob is.
type state int

const (
	missing state = iota
	writing
	written
)

// Writer writes one archive, beside its path and renamed at the end.
type Writer struct {
	layout  *Layout
	path    string
	workers int
	lock    *held
	file    output
	pool    buffers

	mu          sync.Mutex
	closed      bool
	compressing bool
	members     []Member         // the index as far as it is known
	places      map[string]int   // digest of a stored blob → members
	states      map[string]state // of the stored blobs
	next        int              // the first compressed member that is not in the file
	end         int64            // where it begins
}

// Create begins an archive at path as l lays it out, writes its head, and
// reserves the space of the stored blobs. Until Close the file is called
// .name.part in the same directory; one that a killed run left is replaced.
// With a volume size the archive is written as path.001, path.002 and so on,
// each under such a name until Close.
// A second Writer of the same path is refused with ErrBusy, which names the
// process that holds it.
func Create(path string, l *Layout, o WriteOptions) (*Writer, error) {
	if fi, err := os.Stat(path); err == nil && !fi.Mode().IsRegular() {
		return nil, fault(ErrInput, "", noOffset, "%s exists and is not a regular file", path)
	}
	lock, err := takeLock(path)
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

// begin makes the partial file with all that is known already.
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

// WriteStored copies the stored blob with this digest from r into its place and
// checks size and digest on the way; of one that is Checked already, the size
// alone. Different blobs may be written at once.
// After an error the same blob may be tried again: errors of r come back as
// they are, wrong content as ErrSize or ErrDigest. A blob that the layout does
// not store is ErrUnexpected, one that is there already ErrDuplicate.
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
		return fault(ErrDuplicate, blobName(digest), noOffset, "the blob is written already")
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

// Opener gives the content of a blob. It may wait until the blob has arrived, and
// must return when ctx ends.
type Opener func(ctx context.Context, digest string) (io.ReadCloser, error)

// WriteCompressed appends the compressed blobs, in their order, each from the
// reader that open gives for its digest, checked unless it is Checked. It may
// run beside WriteStored. After an error, calling it again goes on with the
// first blob that is missing.
func (w *Writer) WriteCompressed(ctx context.Context, open Opener) error {
	w.mu.Lock()
	if w.closed || w.compressing {
		defer w.mu.Unlock()
		if w.closed {
			return os.ErrClosed
		}
		return fault(ErrInput, "", noOffset, "the compressed blobs are being written already")
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
		return fault(ErrMissing, w.members[from].Name, noOffset, "%d compressed blobs are not written, the first is this", len(w.members)-from)
	}
	c := newCompressor(w.workers)
	c.members, c.open, c.dst, c.off, c.commit = w.layout.members, open, w.file, w.end, w.commit
	return c.run(ctx, from, w.workers)
}

// commit notes that compressed member i lies in the file, whole and checked.
func (w *Writer) commit(i int, length int64, xxh64 string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := &w.members[i]
	m.Offset, m.Length, m.XXH64 = w.end, length, xxh64
	w.end += length
	w.next = i + 1
}

// Missing lists the digests of the stored blobs that are not written yet, in
// file order.
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

// Close writes the compressed blobs that WriteCompressed has not written, the
// end and the index, flushes everything to the disk, and gives the file its
// name. While stored blobs are missing it refuses with ErrMissing. open may be
// nil when no compressed blob is left. After an error Close may be tried again;
// whoever gives up calls Abort.
func (w *Writer) Close(ctx context.Context, open Opener) error {
	if ds := w.Missing(); len(ds) > 0 {
		return fault(ErrMissing, blobName(ds[0]), noOffset, "%d stored blobs are not written, the first is this", len(ds))
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
