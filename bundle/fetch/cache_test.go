package fetch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/gofrs/flock"
)

func hoursOf(n int) time.Duration { return time.Duration(n) * time.Hour }

func fileTime(t *testing.T, path string) time.Time {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}

func TestCachePut(t *testing.T) {
	c, err := OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	content := noise(1, 600<<10)
	d, n := sum(content), int64(len(content))
	broken := errors.New("broken")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	refused := []struct {
		name   string
		ctx    context.Context
		digest string
		size   int64
		r      io.Reader
		check  func(error) bool
	}{
		{"other bytes", t.Context(), d, n, bytes.NewReader(noise(2, 600<<10)), is[*DigestError]},
		{"too short", t.Context(), d, n, bytes.NewReader(content[1:]), is[*SizeError]},
		{"too long", t.Context(), d, n, io.MultiReader(bytes.NewReader(content), strings.NewReader("x")), is[*SizeError]},
		{"endless", t.Context(), d, n, endless{}, is[*SizeError]},
		{"reader fails", t.Context(), d, n, io.MultiReader(bytes.NewReader(content[:1000]), iotest.ErrReader(broken)), func(err error) bool { return errors.Is(err, broken) }},
		{"cancelled", cancelled, d, n, bytes.NewReader(content), func(err error) bool { return errors.Is(err, context.Canceled) }},
		{"no digest", t.Context(), "../../../etc/x", n, bytes.NewReader(content), func(err error) bool { return err != nil }},
		{"upper case", t.Context(), strings.ToUpper(d), n, bytes.NewReader(content), func(err error) bool { return err != nil }},
	}
	for _, test := range refused {
		if err := c.Put(test.ctx, test.digest, test.size, test.r); !test.check(err) {
			t.Errorf("%s: error %v", test.name, err)
		}
		if blobs := blobsOf(t, c); len(blobs) > 0 {
			t.Errorf("%s: left %v", test.name, blobs)
		}
		mustBeClean(t, c)
	}
	if err := c.Put(t.Context(), d, n, iotest.HalfReader(bytes.NewReader(content))); err != nil {
		t.Fatal(err)
	}
	mustHold(t, c, content)
	if err := c.Put(t.Context(), d, n, iotest.ErrReader(broken)); err != nil {
		t.Errorf("second put: %v", err)
	}
	if info, err := os.Stat(c.blob(d)); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if !c.Has(d, n) || c.Has(d, n-1) || c.Has(sum(nil), 0) || c.Has("x", 1) {
		t.Error("Has is wrong")
	}
	for range 2 { // what is gone is gone
		if err := c.Discard(d); err != nil {
			t.Error(err)
		}
	}
	if c.Has(d, n) {
		t.Error("discarded blob is there")
	}
	if _, err := c.Open(d); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("open of a discarded blob: %v", err)
	}
	for _, bad := range []string{"", "..", strings.Repeat("/", 64)} {
		if _, err := c.Open(bad); err == nil {
			t.Errorf("opened %q", bad)
		}
		if err := c.Discard(bad); err == nil {
			t.Errorf("discarded %q", bad)
		}
	}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestLockWaitsAndGivesUp(t *testing.T) {
	dir := t.TempDir()
	for _, other := range []bool{false, true} {
		a, err := OpenCache(dir)
		if err != nil {
			t.Fatal(err)
		}
		b := a
		if other { // as another process
			if b, err = OpenCache(dir); err != nil {
				t.Fatal(err)
			}
		}
		log := client(t, Options{Cache: a}).log
		unlock, err := a.lock(t.Context(), log, "k")
		if err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := b.lock(short, log, "k"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("other process %t: error %v, want the deadline", other, err)
		}
		cancel()
		free, err := b.lock(t.Context(), log, "another")
		if err != nil {
			t.Fatal(err)
		}
		free()
		got := make(chan error, 1)
		go func() {
			unlock, err := b.lock(context.WithoutCancel(t.Context()), log, "k")
			if err == nil {
				unlock()
			}
			got <- err
		}()
		unlock()
		if err := <-got; err != nil {
			t.Error(err)
		}
		mustBeClean(t, a)
	}
}

// TestLockPassesOn: a waiter that gets the lock as its file is removed does not hold a lock
// that others no longer find.
func TestLockPassesOn(t *testing.T) {
	dir := t.TempDir()
	open := func() *Cache {
		c, err := OpenCache(dir)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first, second, third := open(), open(), open()
	log := client(t, Options{Cache: first}).log
	unlock, err := first.lock(t.Context(), log, "k")
	if err != nil {
		t.Fatal(err)
	}
	type held struct {
		unlock func()
		err    error
	}
	got := make(chan held)
	go func() {
		unlock, err := second.lock(context.WithoutCancel(t.Context()), log, "k")
		got <- held{unlock, err}
	}()
	time.Sleep(lockPoll / 2) // it waits by now, with the file open
	unlock()
	h := <-got
	if h.err != nil {
		t.Fatal(h.err)
	}
	short, cancel := context.WithTimeout(t.Context(), 2*lockPoll)
	defer cancel()
	if free, err := third.lock(short, log, "k"); err == nil {
		t.Error("two hold one lock")
		free()
	}
	h.unlock()
	mustBeClean(t, first)
}

// TestLockOfARemovedFile is the moment between opening a lock file and locking
// it, in which its holder removes it.
func TestLockOfARemovedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k.lock")
	f := flock.New(path)
	if ok, err := f.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	defer f.Close()
	if !sameFile(f, path) {
		t.Error("the file that is locked is not taken for the one at its path")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if sameFile(f, path) {
		t.Error("a removed file is taken for the one at its path")
	}
	write(t, path, nil)
	if sameFile(f, path) {
		t.Error("another file is taken for the one that is locked")
	}
}

// TestFresh: a cache reports as hashed only what it hashed itself, not what was there
// before.
func TestFresh(t *testing.T) {
	c, err := OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	content := noise(1, 1000)
	put := func(c *Cache) {
		t.Helper()
		if err := c.Put(t.Context(), sum(content), int64(len(content)), bytes.NewReader(content)); err != nil {
			t.Fatal(err)
		}
	}
	fresh := func(c *Cache, want bool, when string) {
		t.Helper()
		if c.Fresh(sum(content)) != want {
			t.Errorf("%s: fresh is not %v", when, want)
		}
	}
	fresh(c, false, "empty")
	put(c)
	fresh(c, true, "put")
	later, err := OpenCache(c.Dir())
	if err != nil {
		t.Fatal(err)
	}
	put(later)
	fresh(later, false, "there already")
	if err := c.Discard(sum(content)); err != nil {
		t.Fatal(err)
	}
	fresh(c, false, "discarded")
	u := serve(t, served(content, ""))
	o := options(t, u)
	if err := client(t, o).FetchArtifact(t.Context(), plainFile(content)); err != nil {
		t.Fatal(err)
	}
	fresh(o.Cache, true, "downloaded")
}
