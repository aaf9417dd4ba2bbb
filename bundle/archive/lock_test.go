package archive

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// TestLockIsExclusive lets many goroutines lock and unlock as fast as they can: the lock
// file is created and removed, and still only one holds the lock.
func TestLockIsExclusive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	var holders, taken atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 400 {
				l, err := lockPath(path)
				if err != nil {
					if !errors.Is(err, ErrBusy) {
						t.Error(err)
					}
					continue
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d hold the lock", n)
				}
				taken.Add(1)
				runtime.Gosched()
				holders.Add(-1)
				l.release()
				l.release() // more than once is allowed
			}
		})
	}
	wg.Wait()
	if taken.Load() == 0 {
		t.Error("nobody got the lock")
	}
	if got := names(t, filepath.Dir(path)); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
}

func TestLockOfAKilledProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(hidden(path, "lock"), []byte("999999999"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := lockPath(path)
	if err != nil {
		t.Fatalf("a file without a lock on it: %v", err)
	}
	l.release()
	if _, err := lockPath(filepath.Join(t.TempDir(), "no", "x")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such directory: %v", err)
	}
}
