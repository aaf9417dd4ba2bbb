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

// Verify opens the archive at path and then reads every byte of it: each blob
// against its digest, and everything between the blobs against the one form it
// can have. It returns every finding joined, each with the blob's name.
// Progress, if set, is told how many bytes were read since the last call.
//
// Of a delta, what it leaves out is read from the bases, which then have to hold
// all of it; without bases that is not looked at, and Absent counts it.
func Verify(ctx context.Context, path string, policy Policy, workers int, progress func(int64), bases ...string) (*Bundle, error) {
	b, err := OpenPart(ctx, path, policy, Bases{Given: bases})
	if err != nil {
		return nil, err
	}
	if len(bases) > 0 {
		if err := b.Whole(); err != nil {
			return nil, errors.Join(err, b.Close())
		}
	}
	if err := b.Verify(ctx, workers, progress); err != nil {
		_ = b.Close() // read only: nothing to lose
		return nil, err
	}
	return b, nil
}

// Verify reads every byte of the archive, and what comes from bases, as the
// function of that name does.
func (b *Bundle) Verify(ctx context.Context, workers int, progress func(int64)) error {
	err := b.archive.Verify(ctx, max(workers, 1), progress)
	if err = errors.Join(err, b.verifySupplied(ctx, workers, progress)); err != nil {
		return fmt.Errorf("verify %s: %w", b.path, err)
	}
	return nil
}

// DataBytes is how many bytes Verify reads and tells its progress: everything in
// the archive as it is unpacked, and what comes from bases.
func (b *Bundle) DataBytes() int64 {
	n := int64(0)
	for _, m := range b.archive.Members() {
		n += m.Size
	}
	for _, size := range b.rest.Given {
		n += size
	}
	return n
}

// verifySupplied reads what comes from bases, and gives every finding.
func (b *Bundle) verifySupplied(ctx context.Context, workers int, progress func(int64)) error {
	if progress == nil {
		progress = func(int64) {}
	}
	var mu sync.Mutex
	var found []error
	var g errgroup.Group
	g.SetLimit(max(workers, 1))
	for _, d := range slices.Sorted(maps.Keys(b.rest.Given)) {
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
