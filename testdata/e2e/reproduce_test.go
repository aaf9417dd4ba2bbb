package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

// The same lock gives the same bytes, whatever runs at once and whatever the
// cache holds.
func TestSameLockSameBytes(t *testing.T) {
	s := newSite(t, 0.1)
	out := s.newFolder(t, "out")
	one, two := filepath.Join(s.dir, "cache-1"), filepath.Join(s.dir, "cache-2")
	var want string
	for _, c := range []struct {
		name, cache, parallel, procs string
		before                       func()
	}{
		{name: "cold cache, one after the other", cache: one, parallel: "1", procs: "1"},
		{name: "warm cache, one after the other", cache: one, parallel: "1", procs: "1"},
		{name: "warm cache, all at once", cache: one, parallel: "16", procs: "4"},
		{name: "cold cache, all at once", cache: two, parallel: "16", procs: "4"},
		{name: "half a cache", cache: two, parallel: "3", procs: "2", before: func() { halve(t, two) }},
	} {
		if c.before != nil {
			c.before()
		}
		path := filepath.Join(out, "bundle.tar.zst")
		if r := s.run(t, s.build(path, c.cache, "--parallel", c.parallel), "GOMAXPROCS="+c.procs); r.code != 0 {
			t.Fatalf("%s: exit %d\n%s", c.name, r.code, r.stderr)
		}
		got := hash(t, path)
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("%s: sha256 %s, the first build has %s", c.name, got, want)
		}
		if left := names(t, out); len(left) != 1 {
			t.Errorf("%s: left %v", c.name, left)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// halve removes every second blob of a cache.
func halve(t *testing.T, cache string) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(filepath.Join(cache, "sha256"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if n++; n%2 == 0 {
			return os.Remove(path)
		}
		return nil
	})
	if err != nil || n < 20 {
		t.Fatalf("%d blobs in the cache, %v", n, err)
	}
}

// What was fetched before is not fetched again.
func TestWarmCacheAsksNothing(t *testing.T) {
	s := newSite(t, 0.02)
	out, cache := s.newFolder(t, "out"), filepath.Join(s.dir, "cache")
	s.must(t, s.build(filepath.Join(out, "one.tar.zst"), cache)...)
	s.up.Forget()
	s.must(t, s.build(filepath.Join(out, "two.tar.zst"), cache)...)
	for at, c := range s.up.Counts() {
		t.Errorf("%s was asked for %d times, %d bytes", at, c.Requests, c.Bytes)
	}
}
