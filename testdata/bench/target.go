package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	ggcr "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// target is the registry that all tools push to: it hashes the content, as every registry
// does, and stores it on disk.
type target struct {
	dir string

	mu sync.Mutex
	to http.Handler
}

// ServeHTTP implements http.Handler.
func (t *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t.mu.Lock()
	to := t.to
	t.mu.Unlock()
	to.ServeHTTP(w, r)
}

// empty deletes everything that was pushed.
func (t *target) empty() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.to = ggcr.New(ggcr.Logger(silent()), ggcr.WithBlobHandler(blobFolder(t.dir)))
	return errors.Join(os.RemoveAll(t.dir), os.MkdirAll(t.dir, 0o750))
}

// bytes returns the total size of the pushed blobs.
func (t *target) bytes() int64 {
	return size(t.dir, func(i fs.FileInfo) int64 { return i.Size() })
}

// blobFolder stores blobs in a folder. The library's own handler hashes a complete blob for
// every existence check.
type blobFolder string

func (s blobFolder) path(h v1.Hash) string { return filepath.Join(string(s), h.Hex) }

// Stat implements the library's BlobStatHandler.
func (s blobFolder) Stat(_ context.Context, _ string, h v1.Hash) (int64, error) {
	info, err := os.Stat(s.path(h))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, ggcr.ErrNotFound
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Get implements the library's BlobHandler.
func (s blobFolder) Get(_ context.Context, _ string, h v1.Hash) (io.ReadCloser, error) {
	f, err := os.Open(s.path(h))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ggcr.ErrNotFound
	}
	return f, err
}

// Put implements the library's BlobPutHandler; rc fails when the digest is wrong.
func (s blobFolder) Put(_ context.Context, _ string, h v1.Hash, rc io.ReadCloser) error {
	f, err := os.CreateTemp(string(s), "upload-")
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{f}, struct{ io.Reader }{rc}, make([]byte, 256<<10))
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), s.path(h))
}
