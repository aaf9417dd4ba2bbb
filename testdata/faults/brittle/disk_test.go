package main

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// mounted gives a disk and where it is. Who may not mount is passed over.
func mounted(t *testing.T, d *Disk) string {
	t.Helper()
	dir := t.TempDir()
	m, err := d.Mount(dir)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := m.Unmount(); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// list is every file of a disk with its content, as the medium has it.
func list(n *node, at string) string {
	var out []string
	for _, name := range sorted(n.names) {
		x := n.names[name]
		if x.isDir() {
			out = append(out, at+name+"/", list(x, at+name+"/"))
		} else {
			out = append(out, fmt.Sprintf("%s%s=%s", at, name, x.data))
		}
	}
	return strings.TrimSpace(strings.ReplaceAll(strings.Join(out, " "), "  ", " "))
}

// outcomes loses power many times, and counts what came of it.
func outcomes(d *Disk) map[string]int {
	out := map[string]int{}
	for i := range uint64(400) {
		out[list(d.LosePower(rand.New(rand.NewPCG(1, i))).root(), "")]++
	}
	return out
}

func write(path, text string, flags int, sync bool) error {
	f, err := os.OpenFile(path, os.O_WRONLY|flags, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if sync {
		err = errors.Join(err, f.Sync())
	}
	return errors.Join(err, f.Close())
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// A program sees what it wrote, as on any disk.
func TestItIsAFileSystem(t *testing.T) {
	dir := mounted(t, New(false))
	at := func(p string) string { return filepath.Join(dir, p) }
	must(t, os.MkdirAll(at("a/b"), 0o700), os.WriteFile(at("a/b/f"), []byte("one two"), 0o640), os.Link(at("a/b/f"), at("g")), os.Rename(at("a/b/f"), at("a/h")),
		os.Symlink("a/h", at("l")), os.Truncate(at("g"), 3), os.Mkdir(at("empty"), 0o700), os.Remove(at("empty")))
	text, err := os.ReadFile(at("l"))
	if must(t, err); string(text) != "one" {
		t.Errorf("%q", text)
	}
	if err := os.Remove(at("a")); !errors.Is(err, syscall.ENOTEMPTY) {
		t.Errorf("a folder that is not empty: %v", err)
	}
	if _, err := os.OpenFile(at("g"), os.O_CREATE|os.O_EXCL, 0o600); !errors.Is(err, os.ErrExist) {
		t.Errorf("exclusively over a file: %v", err)
	}
	st, err := os.Stat(at("a/h"))
	if must(t, err); st.Mode() != 0o640 || st.Size() != 3 {
		t.Errorf("%v, %d bytes", st.Mode(), st.Size())
	}
	big := strings.Repeat("0123456789abcdef", 1<<17)
	must(t, os.WriteFile(at("big"), []byte(big), 0o600))
	if text, err := os.ReadFile(at("big")); err != nil || string(text) != big {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	must(t, os.RemoveAll(at("a")))
	entries, err := os.ReadDir(dir)
	if must(t, err); len(entries) != 3 {
		t.Errorf("%v", entries)
	}
}

func TestLosePower(t *testing.T) {
	for name, c := range map[string]struct {
		eager bool
		do    func(dir string) error
		want  []string // each of them comes, and nothing else
	}{
		"nothing synced": {
			do:   func(dir string) error { return write(dir+"/a", "x", os.O_CREATE, false) },
			want: []string{"", "a=", "a=x", "a=\x00"},
		},
		"content synced, name not": {
			do:   func(dir string) error { return write(dir+"/a", "x", os.O_CREATE, true) },
			want: []string{"", "a=x"},
		},
		"content synced, on a journal": {
			eager: true,
			do:    func(dir string) error { return write(dir+"/a", "x", os.O_CREATE, true) },
			want:  []string{"a=x"},
		},
		"both synced": {
			do: func(dir string) error {
				return errors.Join(write(dir+"/a", "x", os.O_CREATE, true), syncDir(dir))
			},
			want: []string{"a=x"},
		},
		"a folder's name not synced": {
			do: func(dir string) error {
				return errors.Join(os.Mkdir(dir+"/d", 0o700), write(dir+"/d/a", "x", os.O_CREATE, true), syncDir(dir+"/d"))
			},
			want: []string{"", "d/ d/a=x"},
		},
		"renamed over without a sync of the content": {
			do: func(dir string) error {
				return errors.Join(write(dir+"/a", "old", os.O_CREATE, true), write(dir+"/.a", "new", os.O_CREATE, false), os.Rename(dir+"/.a", dir+"/a"), syncDir(dir))
			},
			want: []string{"a=", "a=n", "a=ne", "a=new", "a=\x00\x00\x00"},
		},
		"renamed over as it should be": {
			do: func(dir string) error {
				return errors.Join(write(dir+"/a", "old", os.O_CREATE, true), syncDir(dir), write(dir+"/.a", "new", os.O_CREATE, true), os.Rename(dir+"/.a", dir+"/a"))
			},
			want: []string{"a=old", ".a=new a=old", "a=new"},
		},
		"written over in place": {
			do: func(dir string) error {
				return errors.Join(write(dir+"/a", "old", os.O_CREATE, true), syncDir(dir), write(dir+"/a", "new", 0, false))
			},
			want: []string{"a=old", "a=new"},
		},
		"emptied and written over": {
			do: func(dir string) error {
				return errors.Join(write(dir+"/a", "old", os.O_CREATE, true), syncDir(dir), write(dir+"/a", "new", os.O_TRUNC, false))
			},
			want: []string{"a=old", "a=", "a=n", "a=ne", "a=new"},
		},
		"synced, then removed": {
			do: func(dir string) error {
				return errors.Join(write(dir+"/a", "old", os.O_CREATE, true), syncDir(dir), os.Remove(dir+"/a"))
			},
			want: []string{"a=old", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := New(c.eager)
			must(t, c.do(mounted(t, d)))
			got := outcomes(d)
			for _, w := range c.want {
				if got[w] == 0 {
					t.Errorf("never %q", w)
				}
				delete(got, w)
			}
			if len(got) > 0 {
				t.Errorf("also %q", keys(got))
			}
		})
	}
}

// Pages come and go by themselves.
func TestPagesAreLostOneByOne(t *testing.T) {
	d := New(false)
	dir := mounted(t, d)
	must(t, write(dir+"/a", strings.Repeat("x", 2*page), os.O_CREATE, false), syncDir(dir))
	hole := "a=" + strings.Repeat("\x00", page) + strings.Repeat("x", page)
	if outcomes(d)[hole] == 0 {
		t.Error("never the second page without the first")
	}
}

// After a sync that failed the next one succeeds, and what was dirty is gone.
func TestFailedSyncThrowsAway(t *testing.T) {
	d := New(false)
	dir := mounted(t, d)
	must(t, write(dir+"/a", "old", os.O_CREATE, true), syncDir(dir))
	f, err := os.OpenFile(dir+"/a", os.O_WRONLY, 0)
	must(t, err)
	defer f.Close()
	_, err = f.WriteString("new")
	must(t, err)
	d.FailAt(Sync, 1)
	if err := f.Sync(); !errors.Is(err, syscall.EIO) || d.Struck() != "/a" {
		t.Errorf("%v at %q", err, d.Struck())
	}
	must(t, f.Sync())
	if got := outcomes(d); len(got) != 1 || got["a=old"] == 0 {
		t.Errorf("%q", keys(got))
	}
	must(t, f.Close())
	d.Forget()
	if text, err := os.ReadFile(dir + "/a"); err != nil || string(text) != "old" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestEachCallFails(t *testing.T) {
	for kind, do := range map[Kind]func(dir string) error{
		Write:  func(dir string) error { return write(dir+"/b", "x", os.O_CREATE, false) },
		Sync:   func(dir string) error { return write(dir+"/b", "x", os.O_CREATE, true) },
		Close:  func(dir string) error { return write(dir+"/b", "x", os.O_CREATE, false) },
		Rename: func(dir string) error { return os.Rename(dir+"/b", dir+"/c") },
	} {
		t.Run(string(kind), func(t *testing.T) {
			d := New(false)
			dir := mounted(t, d)
			must(t, write(dir+"/a", "x", os.O_CREATE, false), write(dir+"/b", "x", os.O_CREATE, false))
			d.FailAt(kind, 2)
			must(t, write(dir+"/a", "y", 0, true), os.Rename(dir+"/a", dir+"/d"))
			if err := do(dir); !errors.Is(err, syscall.EIO) || d.Struck() != "/b" {
				t.Errorf("%v at %q", err, d.Struck())
			}
			if kind != Rename && kind != Write { // there is no second one, or the place stays bad
				must(t, do(dir))
			}
		})
	}
}

// Once the power is off nothing is answered, and nothing more reaches the medium.
func TestCut(t *testing.T) {
	d := New(false)
	dir := mounted(t, d)
	var killed atomic.Int32
	d.CutAt(4, func() { killed.Add(1) }) // create, write, sync, then the folder's
	must(t, write(dir+"/a", "x", os.O_CREATE, true))
	if err := syncDir(dir); !errors.Is(err, syscall.EIO) || killed.Load() != 1 || !d.WasCut() {
		t.Errorf("%v, killed %d times", err, killed.Load())
	}
	if err := write(dir+"/b", "x", os.O_CREATE, true); !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	if got := outcomes(d); got[""] == 0 || got["a=x"] == 0 || len(got) != 2 {
		t.Errorf("%q", keys(got))
	}
}

func keys(m map[string]int) []string { return slices.Sorted(maps.Keys(m)) }
