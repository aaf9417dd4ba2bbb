package fetch

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// lockPoll is how often a lock that another process holds is tried again.
const lockPoll = 100 * time.Millisecond

// lock makes the caller the only one, in any process, that works on the partial
// file of key, until it calls the function returned.
func (c *Cache) lock(ctx context.Context, log *slog.Logger, key string) (func(), error) {
	leave, err := c.locks.enter(ctx, key)
	if err != nil {
		return nil, err
	}
	path := c.partial(key + ".lock")
	for {
		f := flock.New(path)
		ok, err := f.TryLock()
		if err == nil && !ok {
			log.InfoContext(ctx, "waiting for another process that downloads the same", "partial", key)
			_, err = f.TryLockContext(ctx, lockPoll)
		}
		if err != nil {
			_ = f.Close()
			leave()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if sameFile(f, path) {
			return func() {
				_ = os.Remove(path) // before the lock is let go: who waits for it looks again
				_ = f.Close()
				leave()
			}, nil
		}
		// The holder before removed the file: what is locked here is no longer
		// what others will lock.
		_ = f.Close()
	}
}

func sameFile(f *flock.Flock, path string) bool {
	held, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(held, named)
}

// keyedMutex is a mutex per key, for goroutines: they wait without polling. Its
// zero value is ready.
type keyedMutex struct {
	mu   sync.Mutex
	held map[string]*keyedWaiters
}

type keyedWaiters struct {
	turn  chan struct{} // holds one token while nobody is in
	count int           // who is in and who waits
}

// enter waits for key's turn, or for ctx to end.
func (m *keyedMutex) enter(ctx context.Context, key string) (leave func(), err error) {
	m.mu.Lock()
	if m.held == nil {
		m.held = map[string]*keyedWaiters{}
	}
	w := m.held[key]
	if w == nil {
		w = &keyedWaiters{turn: make(chan struct{}, 1)}
		w.turn <- struct{}{}
		m.held[key] = w
	}
	w.count++
	m.mu.Unlock()
	drop := func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if w.count--; w.count == 0 {
			delete(m.held, key)
		}
	}
	select {
	case <-w.turn:
		return func() { w.turn <- struct{}{}; drop() }, nil
	case <-ctx.Done():
		drop()
		return nil, ctx.Err()
	}
}
