package bundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Verify opens the archive at path and reads every byte of it: each blob is checked against
// its digest, and everything between the blobs against its prescribed form. It returns all
// findings joined, each with the blob's name. Progress, if set, receives the number of
// bytes read since the last call.
//
// For a delta, the blobs that it leaves out are read from the bases, which must then
// contain all of them. Without bases they are not checked, and Absent counts them.
func Verify(ctx context.Context, path string, policy Policy, workers int, progress func(int64), bases ...string) (*Bundle, error) {
	b, err := OpenPartial(ctx, path, policy, Bases{Explicit: bases})
	if err != nil {
		return nil, err
	}
	if len(bases) > 0 {
		if err := b.CheckComplete(); err != nil {
			return nil, errors.Join(err, b.Close())
		}
	}
	if err := b.Verify(ctx, workers, progress); err != nil {
		_ = b.Close() // read only: nothing to lose
		return nil, err
	}
	return b, nil
}

// Verify reads every byte of the archive and of the blobs in its bases, like the function
// Verify.
func (b *Bundle) Verify(ctx context.Context, workers int, progress func(int64)) error {
	err := b.archive.Verify(ctx, max(workers, 1), progress)
	if err = errors.Join(err, b.verifySupplied(ctx, workers, progress)); err != nil {
		return fmt.Errorf("verify %s: %w", b.path, err)
	}
	return nil
}

// DataBytes is the number of bytes that Verify reads and reports to progress: the unpacked
// content of the archive, and the blobs in its bases.
func (b *Bundle) DataBytes() int64 {
	n := int64(0)
	for _, m := range b.archive.Members() {
		n += m.Size
	}
	for _, size := range b.rest.Sourced {
		n += size
	}
	return n
}

// verifySupplied reads the blobs in the bases and returns all findings.
func (b *Bundle) verifySupplied(ctx context.Context, workers int, progress func(int64)) error {
	if progress == nil {
		progress = func(int64) {}
	}
	var mu sync.Mutex
	var found []error
	var g errgroup.Group
	g.SetLimit(max(workers, 1))
	for _, d := range slices.Sorted(maps.Keys(b.rest.Sourced)) {
		g.Go(func() error {
			err := b.drain(ctx, d, progress)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				found = append(found, err)
			}
			return nil
		})
	}
	_ = g.Wait() // the functions above keep their errors
	if err := ctx.Err(); err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(found...)
}

func (b *Bundle) drain(ctx context.Context, d string, progress func(int64)) error {
	rc, _, err := b.Blob(d)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, &meter{r: rc, err: ctx.Err, add: progress})
	return errors.Join(err, rc.Close())
}
