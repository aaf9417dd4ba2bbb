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

// output is the destination of an archive: one file, or volumes. The files get their final
// names when it is published.
type output interface {
	io.WriterAt
	io.ReaderAt
	// reserve allocates disk space for the first n bytes.
	reserve(n int64) error
	// publish ends the archive after size bytes, syncs it and renames it to its name.
	publish(ctx context.Context, size int64) error
	// discard removes the partial files.
	discard() error
	// keep closes the partial files, to be continued.
	keep() error
}

// newOutput creates the output for an archive of at most size bytes at path, or opens the
// existing partial files to continue them.
func newOutput(path string, size int64, o VolumeOptions, existing bool) (output, error) {
	if o.VolumeSize == 0 {
		if o.Parity != 0 {
			return nil, fault(ErrInput, "", noOffset, "parity requires volumes: set the volume size too")
		}
		f, err := openPart(path, existing)
		if err != nil {
			return nil, err
		}
		return &oneFile{path: path, file: f}, nil
	}
	if err := checkVolumes(size, o.VolumeSize, o.Parity); err != nil {
		return nil, err
	}
	if !existing {
		if err := clearParts(path); err != nil {
			return nil, err
		}
	}
	return &volumeOutput{base: path, o: o, existing: existing}, nil
}

// newPart creates the partial file for path and removes the one of a killed run.
func newPart(path string) (*os.File, error) {
	part := PartialPath(path)
	if err := os.Remove(part); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
}

// openPart opens the existing partial file for path, or creates it.
func openPart(path string, existing bool) (*os.File, error) {
	if !existing {
		return newPart(path)
	}
	f, err := os.OpenFile(PartialPath(path), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return newPart(path)
	}
	return f, err
}

// oneFile is an output of one file.
type oneFile struct {
	path    string
	file    *os.File
	written atomic.Int64
}

// writebackEvery is the number of written bytes after which writeback is started.
const writebackEvery = 64 << 20

// WriteAt implements io.WriterAt.
func (f *oneFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.file.WriteAt(p, off)
	if w := f.written.Add(int64(n)); w/writebackEvery > (w-int64(n))/writebackEvery {
		startWriteback(f.file)
	}
	return n, err
}

// ReadAt implements io.ReaderAt.
func (f *oneFile) ReadAt(p []byte, off int64) (int, error) { return f.file.ReadAt(p, off) }

func (f *oneFile) reserve(n int64) error { return reserve(f.file, n) }

func (f *oneFile) publish(_ context.Context, size int64) error {
	// A failed attempt at a compressed blob may have written beyond size.
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

func (f *oneFile) keep() error { return f.file.Close() }
