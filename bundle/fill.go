package bundle

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/bundle/archive"
)

// builder fills one archive: it fetches blobs, writes stored blobs to their places as they
// arrive, and compresses the others at the same time.
type builder struct {
	BuildRequest
	writer  *archive.Writer
	jobs    []job
	of      map[string]job           // the job that fetches a compressed blob
	arrived map[string]chan struct{} // closed once a compressed blob is in the cache
}

func newBuilder(r BuildRequest, w *archive.Writer, all []job) *builder {
	b := &builder{BuildRequest: r, writer: w, jobs: slices.Clone(all), of: map[string]job{}, arrived: map[string]chan struct{}{}}
	sortJobs(b.jobs)
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
		if err := b.writer.WriteStored(ctx, d.descriptor.Digest.String(), bytes.NewReader(d.bytes)); err != nil {
			return err
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return b.compress(ctx) })
	g.Go(func() error { return b.store(ctx) })
	return g.Wait()
}

// store runs the jobs in parallel.
func (b *builder) store(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(b.Parallel, 1))
	for _, j := range b.jobs {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			if err := b.runJob(ctx, j); err != nil {
				return named(j.name, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// runJob fetches one job, writes its stored blobs, and signals the arrival of the others. A
// cached blob that does not match its digest is discarded and fetched again, once.
func (b *builder) runJob(ctx context.Context, j job) error {
	if err := j.fetch(ctx); err != nil {
		return err
	}
	for _, blob := range j.blobs {
		if blob.Compress {
			close(b.arrived[blob.Digest])
			continue
		}
		err := b.place(ctx, blob)
		if corrupt(err) {
			if err = b.refetch(ctx, j, blob.Digest); err == nil {
				err = b.place(ctx, blob)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// place writes a stored blob from the cache into the archive.
func (b *builder) place(ctx context.Context, blob archive.Blob) error {
	r, err := b.open(blob.Digest)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // opened for reading only
	return b.writer.WriteStored(ctx, blob.Digest, r)
}

// refetch discards the cached copy of a blob and fetches it again.
func (b *builder) refetch(ctx context.Context, j job, d string) error {
	if err := b.Cache.Discard(hexOf(d)); err != nil {
		return err
	}
	return j.fetch(ctx)
}

// compress writes the compressed blobs in their order, each after it has arrived. A corrupt
// blob is fetched again, once.
func (b *builder) compress(ctx context.Context) error {
	tried := map[string]bool{}
	for {
		var at string // the blob that was being read
		err := b.writer.WriteCompressed(ctx, func(ctx context.Context, d string) (io.ReadCloser, error) {
			at = d
			select {
			case <-b.arrived[d]:
				return b.open(d)
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
			if err = b.refetch(ctx, j, at); err == nil {
				continue
			}
		}
		return named(cmp.Or(j.name, b.Output), err)
	}
}

// open opens a blob of the cache. Blobs that were hashed when they were written in this run
// are not hashed again.
func (b *builder) open(d string) (io.ReadCloser, error) {
	f, err := b.Cache.Open(hexOf(d))
	switch {
	case err != nil:
		return nil, err
	case b.Cache.Fresh(hexOf(d)):
		return archive.Checked{ReadCloser: f}, nil
	}
	return f, nil
}

// corrupt reports whether err says that content does not match its digest or size.
func corrupt(err error) bool {
	return errors.Is(err, archive.ErrDigest) || errors.Is(err, archive.ErrSize)
}
