package bundle

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/bundle/fetch"
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
// and before them the archives (0), which are in the cache meanwhile.
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

// lanes splits sorted jobs. Archives are few at a time, because they are in the cache meanwhile,
// and jobs with blobs to compress are half of all, so that the connections do not wait for the
// processors.
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

// runJob writes the blobs of a job, from an earlier run, from this machine or from the network.
func (b *builder) runJob(ctx context.Context, j job) error {
	var missing []archive.Blob
	for _, blob := range j.blobs {
		done, err := b.local(ctx, j, blob)
		if err != nil {
			return err
		}
		if !done {
			missing = append(missing, blob)
		}
	}
	switch {
	case len(missing) == 0:
		return nil
	case j.stream != nil && !b.KeepCache:
		return b.streamBlob(ctx, j, missing[0])
	case j.unpack != nil && !b.KeepCache:
		return b.unpackBlobs(ctx, j, missing)
	}
	if err := j.fetch(ctx); err != nil {
		return err
	}
	for _, blob := range missing {
		if err := b.store(ctx, j, blob); err != nil {
			return err
		}
	}
	return nil
}

// local writes a blob that is on this machine, and reports whether it did. Content that is
// wrong is discarded.
func (b *builder) local(ctx context.Context, j job, blob archive.Blob) (done bool, err error) {
	if done, err := b.writer.Recovered(ctx, blob.Digest); done || err != nil || !b.sources.has(blob) {
		return done, err
	}
	if err := b.store(ctx, j, blob); !corrupt(err) {
		return err == nil, err
	}
	return false, b.sources.discard(blob.Digest)
}

// unpackBlobs downloads an archive and writes those of its entries that are missing.
func (b *builder) unpackBlobs(ctx context.Context, j job, missing []archive.Blob) error {
	if err := j.unpack(ctx, func(ctx context.Context, sha256 string) (fetch.File, error) {
		i := slices.IndexFunc(missing, func(x archive.Blob) bool { return hexOf(x.Digest) == sha256 })
		if i < 0 {
			return nil, nil //nolint:nilnil // it is in the archive
		}
		d := missing[i].Digest
		missing = slices.Delete(missing, i, i+1)
		return b.writer.Blob(ctx, d)
	}); err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("%d entries did not come, such as %s", len(missing), missing[0].Digest)
	}
	return nil
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
