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

// lockPoll is the interval for retrying a lock that another process holds.
const lockPoll = 100 * time.Millisecond

// lock acquires the exclusive lock, among all processes, on the partial file of key. The
// caller must call the returned function to release it.
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
			log.InfoContext(ctx, "waiting for another process that downloads the same file", "partial", key)
			_, err = f.TryLockContext(ctx, lockPoll)
		}
		if err != nil {
			_ = f.Close()
			leave()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if sameFile(f, path) {
			return func() {
				_ = os.Remove(path) // before releasing the lock: waiters check the file again
				_ = f.Close()
				leave()
			}, nil
		}
		// The previous holder removed the file: this lock is on a file that other processes
		// no longer find.
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

// keyedMutex is a mutex per key for goroutines, which wait without polling. Its zero value
// is ready to use.
type keyedMutex struct {
	mu   sync.Mutex
	held map[string]*keyedWaiters
}

type keyedWaiters struct {
	token chan struct{} // has one token while the mutex is free
	count int           // number of holders and waiters
}

// enter waits until key is free, or ctx ends.
func (m *keyedMutex) enter(ctx context.Context, key string) (leave func(), err error) {
	m.mu.Lock()
	if m.held == nil {
		m.held = map[string]*keyedWaiters{}
	}
	w := m.held[key]
	if w == nil {
		w = &keyedWaiters{token: make(chan struct{}, 1)}
		w.token <- struct{}{}
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
	case <-w.token:
		return func() { w.token <- struct{}{}; drop() }, nil
	case <-ctx.Done():
		drop()
		return nil, ctx.Err()
	}
}
