package lab

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// blocks is what a file takes on the disk, in bytes.
func blocks(t *testing.T, file string) int64 {
	t.Helper()
	var is syscall.Stat_t
	if err := syscall.Stat(file, &is); err != nil {
		t.Fatal(err)
	}
	return is.Blocks * 512
}

// TestLabsFolder has no lab: it makes the file system that labs lie on, and takes it
// away and back.
func TestLabsFolder(t *testing.T) {
	if err := Possible(); err != nil {
		t.Skip(err)
	}
	cache, ctx := t.TempDir(), t.Context()
	dir, file := labsDir(cache), labsFile(cache)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if sharesBlocks(dir) {
		t.Skip("the machine's own file system shares blocks")
	}
	t.Cleanup(func() {
		if err := detach(cache); err != nil {
			t.Error(err)
		}
	})
	stray := filepath.Join(dir, "older")
	if err := os.Mkdir(stray, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := attach(ctx, cache); err == nil || !strings.Contains(err.Error(), stray) {
		t.Errorf("over what it would hide: %v", err)
	}
	if err := os.Remove(stray); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second finds it there
		if err := attach(ctx, cache); err != nil {
			t.Fatal(err)
		}
	}
	if !sharesBlocks(dir) {
		t.Fatal("files do not share blocks")
	}

	// A copy takes no space, and what is removed gives its space back.
	const size = 64 << 20
	began := blocks(t, file)
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i>>8 + i)
	}
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	if err := os.WriteFile(one, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := copyDisk(ctx, one, two); err != nil {
		t.Fatal(err)
	}
	syscall.Sync()
	if took := blocks(t, file) - began; took < size/2 || took > size+size/2 {
		t.Errorf("a file of %d bytes and its copy took %d", size, took)
	}
	if err := os.WriteFile(one, data[:100], 0o600); err != nil {
		t.Fatal(err)
	}
	if is, err := os.Stat(two); err != nil || is.Size() != size {
		t.Errorf("the copy changed: %v, %v", is, err)
	}
	if err := os.Remove(two); err != nil {
		t.Fatal(err)
	}
	for try := 0; blocks(t, file)-began > size/2; try++ {
		if try == 100 {
			t.Fatalf("%d bytes were not given back", blocks(t, file)-began)
		}
		syscall.Sync()
		time.Sleep(50 * time.Millisecond)
	}

	// Whoever is done unmounts it, where there is no lab; what is on it stays.
	if err := locked(ctx, cache, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if is, err := mounted(dir); err != nil || is {
		t.Errorf("it is mounted, without a lab: %v", err)
	}
	if err := released(file); err != nil {
		t.Error(err)
	}
	if err := attach(ctx, cache); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(one); err != nil || len(got) != 100 {
		t.Errorf("what was on it: %d bytes, %v", len(got), err)
	}
}

// TestLabsAfterReboot has a lab that was up when the machine stopped: nobody mounted
// its folder since, and it is found and taken down all the same.
func TestLabsAfterReboot(t *testing.T) {
	if err := Possible(); err != nil {
		t.Skip(err)
	}
	cache, ctx := t.TempDir(), t.Context()
	l := &Lab{Name: "before", Index: 9, Dir: filepath.Join(labsDir(cache), "before")}
	err := locked(ctx, cache, func() error {
		if err := os.MkdirAll(l.Dir, 0o755); err != nil {
			return err
		}
		return l.save()
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = detach(cache) })
	if err := detach(cache); err != nil {
		t.Fatal(err)
	}
	found, err := Open(cache, "before")
	if err != nil {
		t.Fatal(err)
	}
	all, err := List(cache)
	if err != nil || len(all) != 1 || all[0].Index != 9 {
		t.Errorf("labs: %v, %v", all, err)
	}
	if err := found.Down(); err != nil {
		t.Fatal(err)
	}
	if is, err := mounted(labsDir(cache)); err != nil || is {
		t.Errorf("it is mounted, without a lab: %v", err)
	}
	if all, err := List(cache); err != nil || len(all) != 0 {
		t.Errorf("labs: %v, %v", all, err)
	}
}
