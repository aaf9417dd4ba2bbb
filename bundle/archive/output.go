package archive

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/mensylisir/kubexm/manifest/durable"
)

// output is where an archive is written: one file, or volumes. It appears under
// its name when it is published, whole.
type output interface {
	io.WriterAt
	// reserve takes the disk for the first n bytes.
	reserve(n int64) error
	// publish ends the archive after size bytes, flushes it, and gives it its name.
	publish(ctx context.Context, size int64) error
	// discard removes what was written.
	discard() error
}

// newOutput begins an archive of at most size bytes at path.
func newOutput(path string, size int64, o VolumeOptions) (output, error) {
	if o.VolumeSize == 0 {
		if o.Parity != 0 {
			return nil, fault(ErrInput, "", noOffset, "parity is for volumes: give their size too")
		}
		f, err := newPart(path)
		if err != nil {
			return nil, err
		}
		return &oneFile{path: path, file: f}, nil
	}
	if err := checkVolumes(size, o.VolumeSize, o.Parity); err != nil {
		return nil, err
	}
	if err := clearParts(path); err != nil {
		return nil, err
	}
	return &volumeOutput{base: path, o: o}, nil
}

// newPart makes the hidden file that stands for path until it is whole, in
// place of what a killed run left.
func newPart(path string) (*os.File, error) {
	part := hidden(path, "part")
	if err := os.Remove(part); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
}

// oneFile is an output of one file.
type oneFile struct {
	path    string
	file    *os.File
	written atomic.Int64
}

// writebackEvery is after how many written bytes the disk is put to work.
const writebackEvery = 64 << 20

// WriteAt implements io.WriterAt.
func (f *oneFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.file.WriteAt(p, off)
	if w := f.written.Add(int64(n)); w/writebackEvery > (w-int64(n))/writebackEvery {
		startWriteback(f.file)
	}
	return n, err
}

func (f *oneFile) reserve(n int64) error { return reserve(f.file, n) }

func (f *oneFile) publish(_ context.Context, size int64) error {
	// A failed attempt at a compressed blob may have left more behind.
	if err := f.file.Truncate(size); err != nil {
		return err
	}
	if err := f.file.Sync(); err != nil {
		return err
	}
	if err := os.Rename(f.file.Name(), f.path); err != nil {
		return err
	}
	return errors.Join(f.file.Close(), durable.SyncDir(filepath.Dir(f.path)))
}

func (f *oneFile) discard() error { return errors.Join(f.file.Close(), os.Remove(f.file.Name())) }
