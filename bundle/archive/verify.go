package archive

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
)

// Verify checks every byte of the archive: what Open checked, and each entry's frames,
// header, padding, size and digest. Each byte of data is hashed once. It returns all
// findings joined, in file order, each with its entry. workers entries are read
// concurrently; 0 means one per CPU. progress, if not nil, receives the number of bytes
// just checked, also from several goroutines concurrently. Of signatures only the syntax is
// checked.
func (r *Reader) Verify(ctx context.Context, workers int, progress func(n int64)) error {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	// The longest first, so that no worker is left with a long one at the end.
	todo := make([]int, len(r.members))
	for i := range todo {
		todo[i] = i
	}
	slices.SortStableFunc(todo, func(a, b int) int { return cmp.Compare(r.members[b].Size, r.members[a].Size) })
	work := make(chan int, len(todo))
	for _, i := range todo {
		work <- i
	}
	close(work)

	found := make([]error, len(r.members))
	var wg sync.WaitGroup
	for range min(workers, len(todo)) {
		wg.Go(func() {
			for i := range work {
				if ctx.Err() != nil {
					return
				}
				found[i] = r.verify(ctx, &r.members[i], progress)
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.Join(append(r.volumes.damagedVolumes(ctx, r.members, found), found...)...)
}

// verify reads one entry to its end.
func (r *Reader) verify(ctx context.Context, m *Member, progress func(n int64)) (err error) {
	if m.Name == slotName {
		_, err := r.Signatures()
		if err == nil && progress != nil {
			progress(m.Size)
		}
		return err
	}
	b, err := r.open(m)
	if err != nil {
		return err
	}
	_, err = b.WriteTo(meter{ctx.Err, progress})
	return errors.Join(err, b.Close())
}

// meter counts the bytes written to it and fails when its context ends.
type meter struct {
	stop     func() error // the context's Err
	progress func(n int64)
}

func (m meter) Write(p []byte) (int, error) {
	if m.progress != nil {
		m.progress(int64(len(p)))
	}
	return len(p), m.stop()
}
