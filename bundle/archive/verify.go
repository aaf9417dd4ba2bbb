package archive

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
)

// Verify checks every byte of the archive: what Open checked, and each member's
// frames, header, padding, size and digest, each byte of data hashed once. All
// findings come back, joined in file order, each naming its member. workers
// members are read at once, one for each CPU when 0. progress, if not nil, is
// called with the bytes of data just checked, from several goroutines at once.
// Signatures are checked for their grammar only.
func (r *Reader) Verify(ctx context.Context, workers int, progress func(n int64)) error {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	// The longest first, so that no worker is left with it at the end.
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
	return errors.Join(append(r.volumes.suspects(ctx, r.members, found), found...)...)
}

// verify reads one member to its end.
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

// meter counts what passes and ends it with its context.
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
