package archive

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFullDisk writes and extracts on file systems that are too small, in many
// sizes: a clear error, and nothing left. Only root may mount one.
func TestFullDisk(t *testing.T) {
	s := newSample([]int{400_000}, []int{900_000})
	whole := read(t, s.file(t))
	enough := 0
	for kib := 64; kib <= 2560; kib += 128 {
		dir := t.TempDir()
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dk", kib)); err != nil {
			t.Skipf("cannot mount: %v", err)
		}
		path := filepath.Join(dir, "x.tar.zst")
		l := s.layout(t)
		w, err := Create(path, l, WriteOptions{Workers: 1})
		if err == nil {
			d := s.blobs[0].Digest
			err = errors.Join(w.WriteStored(t.Context(), d, bytes.NewReader(s.content[d])), w.Close(t.Context(), s.open), w.Abort())
		}
		left := names(t, dir)
		if err == nil {
			enough++
			if !bytes.Equal(read(t, path), whole) {
				t.Errorf("%d KiB: other bytes", kib)
			}
		} else if !errors.Is(err, unix.ENOSPC) || len(left) != 0 {
			t.Errorf("%d KiB: %v, left behind %v", kib, err, left)
		}
		out := filepath.Join(dir, "out")
		err = Extract(t.Context(), bytes.NewReader(whole), out, ExtractOptions{Limit: 1 << 30})
		if now := names(t, dir); err != nil && (!errors.Is(err, unix.ENOSPC) || len(now) != len(left)) {
			t.Errorf("%d KiB: extract: %v, left behind %v", kib, err, now)
		}
		if err := unix.Unmount(dir, 0); err != nil {
			t.Fatal(err)
		}
	}
	if enough == 0 || enough > 15 {
		t.Errorf("%d of 20 sizes were enough, the test tries nothing", enough)
	}
}

// TestFullDiskForVolumes does the same to volumes with parity: a clear error, and
// neither volumes nor parts of them left.
func TestFullDiskForVolumes(t *testing.T) {
	s := newSample([]int{400_000}, []int{300_000})
	whole := s.file(t)
	enough := 0
	for kib := 64; kib <= 2048; kib += 192 {
		dir := t.TempDir()
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dk", kib)); err != nil {
			t.Skipf("cannot mount: %v", err)
		}
		path := filepath.Join(dir, "x.tar.zst")
		err := Split(t.Context(), whole, path, VolumeOptions{VolumeSize: testVolume, Parity: 2}, nil)
		left := names(t, dir)
		if err == nil {
			enough++
			if err := check(t, path+".001"); err != nil {
				t.Errorf("%d KiB: %v", kib, err)
			}
		} else if !errors.Is(err, unix.ENOSPC) || len(left) != 0 {
			t.Errorf("%d KiB: %v, left behind %v", kib, err, left)
		}
		if err := unix.Unmount(dir, 0); err != nil {
			t.Fatal(err)
		}
	}
	if enough == 0 || enough > 8 {
		t.Errorf("%d of 11 sizes were enough, the test tries nothing", enough)
	}
}
