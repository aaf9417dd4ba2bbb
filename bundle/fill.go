package bundle

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/bundle/archive"
)

// builder fills one archive. Stored blobs go from their source straight to their places.
// Blobs to be compressed wait in the cache for the compressors, which write in the archive's
// order.
type builder struct {
	BuildRequest
	writer  *archive.Writer
	sources *sources
	jobs    []job
	ahead   *ahead
	of      map[string]job           // the job that fetches a compressed blob
	arrived map[string]chan struct{} // closed once a compressed blob can be opened
}

func newBuilder(r BuildRequest, all []job, s *sources) *builder {
	b := &builder{BuildRequest: r, sources: s, jobs: slices.Clone(all), ahead: newAhead(r.ahead), of: map[string]job{}, arrived: map[string]chan struct{}{}}
	for _, j := range all {
		for _, blob := range j.blobs {
			if blob.Compress {
				b.of[blob.Digest], b.arrived[blob.Digest] = j, make(chan struct{})
			}
		}
	}
	return b
}

// sortJobs sorts jobs. First come the jobs of compressed blobs, in the order of the archive,
// because the compressors wait for them. Then the largest jobs come first, so that the
// build does not end with a single large download.
func sortJobs(all []job) {
	first := func(j job) string {
		d := "~" // after every digest
		for _, b := range j.blobs {
			if b.Compress {
				d = min(d, b.Digest)
			}
		}
		return d
	}
	slices.SortStableFunc(all, func(a, b job) int {
		return cmp.Or(strings.Compare(first(a), first(b)), cmp.Compare(b.size, a.size), strings.Compare(a.name, b.name))
	})
}

// fill writes every blob into the archive.
func (b *builder) fill(ctx context.Context, h *head) error {
	for _, d := range h.artifacts {
		if err := b.store(ctx, job{name: b.Output}, archive.Blob{Digest: d.descriptor.Digest.String(), Size: int64(len(d.bytes))}, func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(d.bytes)), nil
		}); err != nil {
			return err
		}
	}
	recovered, err := b.writer.RecoverCompressed(ctx)
	if err != nil {
		return err
	}
	have := map[string]bool{}
	for _, d := range recovered {
		have[d] = true
	}
	var compressed, stored []job
	all := slices.Clone(b.jobs)
	for i := range all {
		all[i].blobs = slices.DeleteFunc(slices.Clone(all[i].blobs), func(x archive.Blob) bool { return have[x.Digest] })
	}
	sortJobs(all)
	for _, j := range all {
		switch {
		case len(j.blobs) == 0:
		case slices.ContainsFunc(j.blobs, func(x archive.Blob) bool { return x.Compress }):
			compressed = append(compressed, j)
		default:
			stored = append(stored, j)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	slots := make(chan struct{}, max(b.Parallel, 1))
	g.Go(func() error { return b.compress(ctx) })
	g.Go(func() error { return b.run(ctx, slots, compressed, b.awaitTurn) })
	g.Go(func() error { return b.run(ctx, slots, stored, func(context.Context, job) error { return nil }) })
	if err := g.Wait(); err != nil {
		return err
	}
	for _, j := range b.jobs { // what came with something else
		for _, blob := range j.blobs {
			if err := b.release(j, blob.Digest); err != nil {
				return err
			}
		}
	}
	return nil
}

// run runs jobs in their order, each when it is admitted and has one of the slots.
func (b *builder) run(ctx context.Context, slots chan struct{}, jobs []job, admit func(context.Context, job) error) error {
	g, gctx := errgroup.WithContext(ctx)
	for _, j := range jobs {
		if err := admit(gctx, j); err != nil {
			break // gctx has ended
		}
		select {
		case slots <- struct{}{}:
		case <-gctx.Done():
			return ended(ctx, g)
		}
		g.Go(func() error {
			defer func() { <-slots }()
			if err := b.runJob(gctx, j); err != nil {
				return named(j.name, err)
			}
			return nil
		})
	}
	return ended(ctx, g)
}

// ended waits for the jobs of g and returns the first error, or that of ctx.
func ended(ctx context.Context, g *errgroup.Group) error {
	if err := g.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// awaitTurn waits until the compressors have dealt with enough of what was fetched before j.
func (b *builder) awaitTurn(ctx context.Context, j job) error {
	for _, blob := range j.blobs {
		if blob.Compress && !b.sources.has(blob) {
			if err := b.ahead.enter(ctx, blob, j.blobs); err != nil {
				return err
			}
		}
	}
	return nil
}

// runJob writes the stored blobs of a job and signals the arrival of the others. What is on
// this machine is not downloaded.
func (b *builder) runJob(ctx context.Context, j job) error {
	fetched := false
	fetch := func() error {
		if fetched {
			return nil
		}
		fetched = true
		return j.fetch(ctx)
	}
	for _, blob := range j.blobs {
		switch {
		case !blob.Compress:
			if err := b.storeBlob(ctx, j, blob, fetch); err != nil {
				return err
			}
			continue
		case !b.sources.has(blob):
			if err := fetch(); err != nil {
				return err
			}
		}
		close(b.arrived[blob.Digest])
	}
	return nil
}

// storeBlob writes a stored blob from an earlier run, from this machine or from the network.
// Content from this machine that is wrong is fetched again.
func (b *builder) storeBlob(ctx context.Context, j job, blob archive.Blob, fetch func() error) error {
	if done, err := b.writer.Recovered(ctx, blob.Digest); done || err != nil {
		return err
	}
	if b.sources.has(blob) {
		err := b.store(ctx, j, blob, func() (io.ReadCloser, error) { return b.sources.open(blob) })
		if err == nil || !corrupt(err) {
			return err
		}
		if err := b.sources.discard(blob.Digest); err != nil {
			return err
		}
		fetch = func() error { return j.fetch(ctx) } // also if that was done for another blob
	}
	if j.stream != nil && !b.KeepCache {
		return b.streamBlob(ctx, j, blob)
	}
	if err := fetch(); err != nil {
		return err
	}
	return b.store(ctx, j, blob, func() (io.ReadCloser, error) { return b.sources.open(blob) })
}

// streamBlob downloads a stored blob to its place.
func (b *builder) streamBlob(ctx context.Context, j job, blob archive.Blob) error {
	w, err := b.writer.Blob(ctx, blob.Digest)
	if err != nil {
		return err
	}
	err = j.stream(ctx, w)
	if err == nil {
		err = w.Commit()
	}
	return errors.Join(err, w.Close())
}

// store copies a stored blob into the archive, and removes it from the cache if this build
// put it there.
func (b *builder) store(ctx context.Context, j job, blob archive.Blob, open func() (io.ReadCloser, error)) error {
	r, err := open()
	if err != nil {
		return err
	}
	err = b.writer.WriteStored(ctx, blob.Digest, r)
	_ = r.Close() // opened for reading only
	if err == nil {
		err = b.release(j, blob.Digest)
	}
	return err
}

// release removes a blob from the cache if this process put it there: the archive has it now.
func (b *builder) release(j job, digest string) error {
	if b.KeepCache || j.keep || !b.Cache.Fresh(hexOf(digest)) {
		return nil
	}
	return b.Cache.Discard(hexOf(digest))
}

// written is called when a compressed blob is in the archive.
func (b *builder) written(digest string) {
	b.ahead.leave(digest)
	_ = b.release(b.of[digest], digest) // tried again at the end
}

// compress writes the compressed blobs in their order, each after it has arrived. A corrupt
// blob is fetched again, once.
func (b *builder) compress(ctx context.Context) error {
	tried := map[string]bool{}
	for {
		var at string // the blob that was being read
		err := b.writer.WriteCompressed(ctx, func(ctx context.Context, d string) (io.ReadCloser, error) {
			at = d
			b.ahead.want(d)
			select {
			case <-b.arrived[d]:
				return b.sources.open(blobOf(b.of[d], d))
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		if err == nil {
			return nil
		}
		j := b.of[at]
		if corrupt(err) && !tried[at] {
			tried[at] = true
			if err = b.sources.discard(at); err == nil {
				err = j.fetch(ctx)
			}
			if err == nil {
				continue
			}
		}
		return named(cmp.Or(j.name, b.Output), err)
	}
}

// blobOf returns the blob of j with a digest.
func blobOf(j job, digest string) archive.Blob {
	for _, b := range j.blobs {
		if b.Digest == digest {
			return b
		}
	}
	return archive.Blob{Digest: digest}
}

// corrupt reports whether err says that content from this machine is wrong, or that a
// remembered bundle cannot be read. It can be downloaded then.
func corrupt(err error) bool {
	var source *sourceError
	return errors.Is(err, archive.ErrDigest) || errors.Is(err, archive.ErrSize) || errors.As(err, &source)
}

// aheadBytes is how much fetched content may wait in the cache for the compressors, beside
// one more file.
const aheadBytes = 96 << 20

// ahead limits the content that waits for the compressors.
type ahead struct {
	most    int64
	mu      sync.Mutex
	bytes   int64
	sizes   map[string]int64 // of what was admitted, by digest
	wanted  map[string]bool  // digests that the compressors wait for
	changed chan struct{}    // closed at the next change
}

func newAhead(most int64) *ahead {
	return &ahead{most: cmp.Or(most, aheadBytes), sizes: map[string]int64{}, wanted: map[string]bool{}, changed: make(chan struct{})}
}

// enter waits until there is room for blob, or the compressors want a blob of its job.
func (a *ahead) enter(ctx context.Context, blob archive.Blob, of []archive.Blob) error {
	for {
		a.mu.Lock()
		wanted := slices.ContainsFunc(of, func(b archive.Blob) bool { return a.wanted[b.Digest] })
		if wanted || a.bytes < a.most {
			a.bytes += blob.Size
			a.sizes[blob.Digest] = blob.Size
			a.mu.Unlock()
			return nil
		}
		changed := a.changed
		a.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// leave ends the waiting of a blob.
func (a *ahead) leave(digest string) {
	a.change(func() {
		a.bytes -= a.sizes[digest]
		delete(a.sizes, digest)
	})
}

// want says that the compressors wait for a blob.
func (a *ahead) want(digest string) { a.change(func() { a.wanted[digest] = true }) }

func (a *ahead) change(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
	close(a.changed)
	a.changed = make(chan struct{})
}
