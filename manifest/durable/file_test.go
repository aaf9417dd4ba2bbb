package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"golang.org/x/sys/unix"
)

// holds says what a folder holds, with the mode of each.
func holds(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s %o %s", e.Name(), info.Mode().Perm(), text))
	}
	return strings.Join(out, ", ")
}

func TestWriteFileReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	for _, step := range []struct {
		text string
		mode fs.FileMode
		want string
	}{
		{"secret", 0o600, "a 600 secret"},
		{"longer than before", 0o644, "a 644 longer than before"},
		{"", 0o600, "a 600 "},
	} {
		if err := WriteFile(path, []byte(step.text), step.mode); err != nil {
			t.Fatal(err)
		}
		if got := holds(t, dir); got != step.want {
			t.Errorf("holds %q, want %q", got, step.want)
		}
	}
}

// What a kill left may have any mode and content: nothing of it stays.
func TestLeftoverIsNotReused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	for _, put := range []func(string, []byte, fs.FileMode) error{WriteFile, Create} {
		if err := os.WriteFile(TempPath(path), []byte("what a kill left, and longer"), 0o666); err != nil {
			t.Fatal(err)
		}
		open, err := os.OpenFile(TempPath(path), os.O_RDWR, 0) // an open handle of the old file cannot read the new key
		if err != nil {
			t.Fatal(err)
		}
		if err := put(path, []byte("key"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, want := holds(t, dir), "key 600 key"; got != want {
			t.Errorf("holds %q, want %q", got, want)
		}
		mine, err := open.Stat()
		if err != nil {
			t.Fatal(err)
		}
		named, err := os.Stat(path)
		if err != nil || os.SameFile(mine, named) {
			t.Errorf("the leftover became the file: %v", err)
		}
		if err := errors.Join(open.Close(), os.Remove(path)); err != nil {
			t.Fatal(err)
		}
	}
}

// A link where the file is to be made leads nowhere.
func TestLinkBesideIsRefused(t *testing.T) {
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, TempPath(filepath.Join(dir, "a"))); err != nil {
		t.Fatal(err)
	}
	err := WriteFile(filepath.Join(dir, "a"), []byte("new"), 0o600)
	if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "a")) {
		t.Errorf("error %v", err)
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != "kept" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestCreateNeverReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if err := Create(path, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Create(path, []byte("second"), 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v, want that it exists", err)
	}
	if got, want := holds(t, dir), "a 600 first"; got != want {
		t.Errorf("holds %q, want %q", got, want)
	}
}

// What cannot be read to its end leaves the old file, and nothing beside it.
func TestErrorLeavesTheOldFile(t *testing.T) {
	dir := t.TempDir()
	if err := WriteFile(filepath.Join(dir, "a"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	broken := errors.New("broken")
	err = Write(root, "a", 0o600, iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("new"))))
	if !errors.Is(err, iotest.ErrTimeout) || !strings.Contains(err.Error(), filepath.Join(dir, "a")) {
		t.Errorf("error %v", err)
	}
	if err := Write(root, "b", 0o600, iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if got, want := holds(t, dir), "a 600 old"; got != want {
		t.Errorf("holds %q, want %q", got, want)
	}
}

func TestFolderThatIsNotThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "a")
	if err := WriteFile(path, nil, 0o600); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v", err)
	}
	if err := MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, nil, 0o600); err != nil {
		t.Error(err)
	}
	if err := MkdirAll(filepath.Join(path, "below"), 0o700); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("a folder in a file: %v", err)
	}
}

// Many concurrent writers of one file: the content is complete, and no writer is refused.
func TestManyWritersOfOneFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 40 {
				if err := WriteFile(path, bytes.Repeat([]byte{'a' + byte(i)}, 5000), 0o600); err != nil {
					t.Error(err)
				}
				if text, err := os.ReadFile(path); err != nil || len(text) != 5000 || len(bytes.Trim(text, string(text[:1]))) > 0 {
					t.Errorf("%d bytes, %v", len(text), err)
				}
			}
		})
	}
	wg.Wait()
	if strings.Contains(holds(t, dir), ".a.new") {
		t.Error("something is left beside the file")
	}
}

// One writer holds the file longer than writing takes: the others get ErrBusy.
func TestBusy(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	f, held, err := begin(root, TempPath("a"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, []byte("x"), 0o600); !errors.Is(err, ErrBusy) {
		t.Errorf("error %v, want that it is busy", err)
	}
	if err := errors.Join(f.Close(), held.Close()); err != nil { // as a kill does
		t.Fatal(err)
	}
	if err := WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Error(err)
	}
}

// TestFoldersThatCannotBeSynced: as those of /proc, and of some disks in a network.
func TestFoldersThatCannotBeSynced(t *testing.T) {
	d, err := os.Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Sync(), d.Close()); !errors.Is(err, unix.EINVAL) {
		t.Skipf("/proc can be synced here: %v", err)
	}
	if err := SyncDir("/proc"); err != nil {
		t.Error(err)
	}
}
