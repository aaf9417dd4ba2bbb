package audit

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// forgetful is a disk that refuses syncs, and loses as the kernel does what came
// between the last good one and the beginning of a bad one. What came while it tried stays.
type forgetful struct {
	*os.File
	bad   int    // syncs that are refused
	while func() // happens during the first of them
	good  int64  // bytes that are safe
}

func (f *forgetful) Sync() error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if f.bad == 0 {
		f.good = st.Size()
		return nil
	}
	f.bad--
	if f.while != nil {
		f.while()
		f.while = nil
	}
	if err := zero(f.Name(), f.good, st.Size()); err != nil {
		return err
	}
	return unix.EIO
}

// zero loses bytes of a file.
func zero(path string, from, to int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(make([]byte, to-from), from)
	return errors.Join(err, f.Close())
}

// TestAFailedSync: the log takes no more lines, says so to the end, and has no gap:
// what a disk has lost is written once more, and where that fails too it ends before.
func TestAFailedSync(t *testing.T) {
	for name, c := range map[string]struct {
		bad   int
		lines int64
	}{"once": {1, 1 + 3 + 2 + 1}, "for good": {9, 1 + 3}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			l, err := Open(path, "demo", "alice@wd1", "v1.2.3")
			if err != nil {
				t.Fatal(err)
			}
			add := func(n int) {
				for range n {
					if err := l.Add(&Line{Type: TypeRun, Message: "line"}); err != nil {
						t.Error(err)
					}
				}
			}
			real, ok := l.f.(*os.File)
			if !ok {
				t.Fatal("the log is in no file")
			}
			disk := &forgetful{File: real, while: func() { add(1) }}
			l.f = disk
			add(3)
			if err := l.Sync(); err != nil {
				t.Fatal(err)
			}
			disk.bad = c.bad
			add(2)
			for range 2 {
				if err := l.Sync(); !errors.Is(err, unix.EIO) {
					t.Errorf("a sync: %v", err)
				}
				if err := l.Add(&Line{Type: TypeRun}); !errors.Is(err, unix.EIO) {
					t.Errorf("a line after it: %v", err)
				}
			}
			if err := l.Close(); !errors.Is(err, unix.EIO) {
				t.Errorf("the end: %v", err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Verify(bytes.NewReader(text), nil)
			if err != nil || len(r.Problems) > 0 || r.Head.Lines != c.lines {
				t.Errorf("%+v, %v, want %d lines", r, err, c.lines)
			}
			if next, err := Open(path, "demo", "alice@wd1", "v1.2.3"); err != nil || next.Head() != r.Head || next.Close() != nil {
				t.Errorf("the next run: %v", err)
			}
		})
	}
}

// slow is a disk that syncs only when it is told to.
type slow struct {
	*os.File
	syncs atomic.Int64
	open  chan struct{}
}

func (f *slow) Sync() error {
	f.syncs.Add(1)
	<-f.open
	return nil
}

// TestASlowDisk: a log that grows faster than its disk takes it waits for the disk, and does
// not keep all of it in memory; nothing waits for a sync of a few lines.
func TestASlowDisk(t *testing.T) {
	l, err := Open(filepath.Join(t.TempDir(), "audit.jsonl"), "demo", "alice@wd1", "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	real, ok := l.f.(*os.File)
	if !ok {
		t.Fatal("the log is in no file")
	}
	disk := &slow{File: real, open: make(chan struct{})}
	l.f = disk
	const writers, size = 8, 64 << 10
	var added, most atomic.Int64
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range 4 * stallSize / size / writers {
				if err := l.Add(&Line{Type: TypeRun, Message: strings.Repeat("x", size)}); err != nil {
					t.Error(err)
				}
				l.mu.Lock()
				most.Store(max(most.Load(), int64(l.pending.Len())))
				l.mu.Unlock()
				added.Add(1)
			}
		})
	}
	for disk.syncs.Load() == 0 || added.Load() < stallSize/size-writers { // the disk takes none of it, and all of this is added
		runtime.Gosched()
	}
	close(disk.open)
	wg.Wait()
	if limit := int64(stallSize + (writers+1)*2*size); most.Load() > limit {
		t.Errorf("%d bytes were in memory, want %d at most", most.Load(), limit)
	}
	if n := disk.syncs.Load(); n < 3 || n > 4*stallSize/size/2 {
		t.Errorf("%d syncs", n)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
