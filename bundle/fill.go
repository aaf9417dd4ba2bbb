package bundle

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

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

// sortJobs sorts jobs by kind, and then the largest first, so that the build does not end with
// a single large download.
func sortJobs(all []job) {
	slices.SortStableFunc(all, func(a, b job) int {
		return cmp.Or(cmp.Compare(a.kind(), b.kind()), cmp.Compare(b.size, a.size), strings.Compare(a.name, b.name))
	})
}

// kind orders jobs: compressing must not hold up the end, so blobs to compress come first (1),
// and before them the archives (0), whose entries take space in the cache meanwhile.
func (j *job) kind() int {
	switch {
	case !slices.ContainsFunc(j.blobs, func(b archive.Blob) bool { return b.Compress }):
		return 2
	case j.stream == nil:
		return 0
	}
	return 1
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

// lane is a kind of jobs, of which at most so many run at once.
type lane struct {
	jobs []job
	most int
}

// lanes splits sorted jobs. Archives are few at a time, because their entries are in the cache
// meanwhile, and blobs to compress are half of all, so that the connections do not wait for
// the processors.
func lanes(all []job, parallel int) []lane {
	out := []lane{{most: max(1, parallel/4)}, {most: max(1, parallel/4)}, {most: parallel}}
	for _, j := range all {
		out[j.kind()].jobs = append(out[j.kind()].jobs, j)
	}
	return out
}

// run runs jobs in parallel. The first ones of each lane begin before those of the next.
func (b *builder) run(ctx context.Context, jobs []job) error {
	slots := make(chan struct{}, max(b.Parallel, 1))
	g, ctx := errgroup.WithContext(ctx)
	before := make(chan struct{})
	close(before)
	for _, l := range lanes(jobs, max(b.Parallel, 1)) {
		wait, begun := before, make(chan struct{})
		g.Go(func() error { return b.runLane(ctx, l, slots, wait, begun) })
		before = begun
	}
	return g.Wait()
}

// runLane runs the jobs of a lane after wait is closed. It closes begun when as many run as
// may.
func (b *builder) runLane(ctx context.Context, l lane, slots, wait, begun chan struct{}) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(l.most)
	select {
	case <-wait:
	case <-ctx.Done():
		return ctx.Err()
	}
	if len(l.jobs) == 0 {
		close(begun)
	}
	var running atomic.Int32
	for _, j := range l.jobs {
		g.Go(func() error {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			defer func() { <-slots }()
			if int(running.Add(1)) == min(l.most, len(l.jobs)) {
				close(begun)
			}
			if err := b.runJob(ctx, j); err != nil {
				return named(j.name, err)
			}
			return nil
		})
	}
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
