package bundle

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/bundle/archive"
)

// builder fills one archive: each blob goes from its source straight into it.
type builder struct {
	BuildRequest
	writer  *archive.Writer
	sources *sources
	jobs    []job
}

// sortJobs sorts jobs. First come those with blobs to compress: compressing must not hold up
// the end. Of these the archives come first, whose entries take space in the cache meanwhile.
// Then the largest jobs come first, so that the build does not end with a single large
// download.
func sortJobs(all []job) {
	order := func(j job) int {
		switch {
		case !j.compresses():
			return 2
		case j.stream == nil:
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b job) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(b.size, a.size), strings.Compare(a.name, b.name))
	})
}

// compresses reports whether a blob of j is compressed.
func (j *job) compresses() bool {
	return slices.ContainsFunc(j.blobs, func(b archive.Blob) bool { return b.Compress })
}

// fill writes every blob into the archive.
func (b *builder) fill(ctx context.Context, h *head) error {
	for _, d := range h.artifacts {
		if err := b.writer.WriteStored(ctx, d.descriptor.Digest.String(), bytes.NewReader(d.bytes)); err != nil {
			return err
		}
	}
	recovered, err := b.writer.RecoverCompressed(ctx)
	if err != nil {
		return err
	}
	all := slices.Clone(b.jobs)
	for i := range all {
		all[i].blobs = slices.DeleteFunc(slices.Clone(all[i].blobs), func(x archive.Blob) bool { return slices.Contains(recovered, x.Digest) })
	}
	sortJobs(all)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return b.writer.WriteStaged(ctx) })
	g.Go(func() error { return b.run(ctx, all) })
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

// run runs jobs in parallel, at most half of them with blobs to compress: then the connections
// do not wait for the processors.
func (b *builder) run(ctx context.Context, jobs []job) error {
	n := slices.IndexFunc(jobs, func(j job) bool { return !j.compresses() })
	if n < 0 {
		n = len(jobs)
	}
	parallel := max(b.Parallel, 1)
	slots := make(chan struct{}, parallel)
	first := make(chan struct{}) // closed when the first jobs of the first kind run
	g, gctx := errgroup.WithContext(ctx)
	start := func(jobs []job, most int, begun func(i int)) func() error {
		return func() error {
			own, octx := errgroup.WithContext(gctx)
			own.SetLimit(most)
			for i, j := range jobs {
				own.Go(func() error {
					select {
					case slots <- struct{}{}:
					case <-octx.Done():
						return octx.Err()
					}
					defer func() { <-slots }()
					begun(i)
					if err := b.runJob(octx, j); err != nil {
						return named(j.name, err)
					}
					return nil
				})
			}
			return own.Wait()
		}
	}
	most := max(parallel/2, 1)
	if n == 0 {
		close(first)
	}
	g.Go(start(jobs[:n], most, func(i int) {
		if i == min(most, n)-1 {
			close(first)
		}
	}))
	g.Go(func() error {
		select {
		case <-first:
		case <-gctx.Done():
			return gctx.Err()
		}
		return start(jobs[n:], parallel, func(int) {})()
	})
	return g.Wait()
}

// runJob writes the blobs of a job. What is on this machine is not downloaded.
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
		if err := b.storeBlob(ctx, j, blob, fetch); err != nil {
			return err
		}
	}
	return nil
}

// storeBlob writes a blob from an earlier run, from this machine or from the network.
// Content from this machine that is wrong is fetched again.
func (b *builder) storeBlob(ctx context.Context, j job, blob archive.Blob, fetch func() error) error {
	if done, err := b.writer.Recovered(ctx, blob.Digest); done || err != nil {
		return err
	}
	if b.sources.has(blob) {
		err := b.store(ctx, j, blob)
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
	return b.store(ctx, j, blob)
}

// streamBlob downloads a blob into the archive.
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

// store copies a blob of this machine into the archive, and removes it from the cache if this
// build put it there.
func (b *builder) store(ctx context.Context, j job, blob archive.Blob) error {
	r, err := b.sources.open(blob)
	if err != nil {
		return err
	}
	err = b.writer.Write(ctx, blob.Digest, r)
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

// corrupt reports whether err says that content from this machine is wrong, or that a
// remembered bundle cannot be read. It can be downloaded then.
func corrupt(err error) bool {
	var source *sourceError
	return errors.Is(err, archive.ErrDigest) || errors.Is(err, archive.ErrSize) || errors.Is(err, archive.ErrFrame) || errors.Is(err, archive.ErrHeader) ||
		errors.As(err, &source)
}
