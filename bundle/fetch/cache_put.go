package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
)

const writePrefix = "write-"

// bufferSize is the buffer of every copy: large enough that system calls are negligible,
// small enough for many concurrent transfers.
const bufferSize = 256 << 10

// Put stores size bytes of r as hexDigest. Content that does not match is a *DigestError or
// *SizeError, and nothing is stored. If the blob already exists, r is not read.
func (c *Cache) Put(ctx context.Context, hexDigest string, size int64, r io.Reader) error {
	if !isHexDigest(hexDigest) {
		return fmt.Errorf("put into cache: %q is not a sha256", hexDigest)
	}
	if c.Has(hexDigest, size) {
		return nil
	}
	w, err := c.newBlob()
	if err != nil {
		return fmt.Errorf("put into cache: %w", err)
	}
	defer w.abort()
	// One byte more than expected is enough to detect excess content.
	if _, err := copyBytes(ctx, w, io.LimitReader(r, size+1)); err != nil {
		return fmt.Errorf("put into cache: %w", err)
	}
	if w.size != size {
		return &SizeError{Name: "sha256:" + hexDigest, Want: size, Got: w.size}
	}
	if got := w.digest(); got != hexDigest {
		return &DigestError{Name: "sha256:" + hexDigest, Want: hexDigest, Got: got}
	}
	return w.commit()
}

// blobWriter writes one blob whose digest is known only at its end.
type blobWriter struct {
	cache *Cache
	file  *os.File
	hash  hash.Hash
	size  int64
}

func (c *Cache) newBlob() (*blobWriter, error) {
	f, err := os.CreateTemp(c.partial(""), writePrefix)
	if err != nil {
		return nil, err
	}
	return &blobWriter{cache: c, file: f, hash: sha256.New()}, nil
}

// Write adds to the blob.
func (w *blobWriter) Write(p []byte) (int, error) {
	n, err := w.file.Write(p)
	w.hash.Write(p[:n])
	w.size += int64(n)
	return n, err
}

func (w *blobWriter) receive(ctx context.Context, r io.Reader) error {
	_, err := copyBytes(ctx, w, r)
	return err
}

func (w *blobWriter) length() int64 { return w.size }

func (w *blobWriter) digest() string { return hex.EncodeToString(w.hash.Sum(nil)) }

// commit syncs the blob's file and renames it to its name.
func (w *blobWriter) commit() error {
	f := w.file
	w.file = nil
	err := errors.Join(f.Sync(), f.Close())
	if err == nil {
		err = w.cache.adopt(f.Name(), w.digest())
	}
	if err != nil {
		return fmt.Errorf("put into cache: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// abort discards an uncommitted blob.
func (w *blobWriter) abort() {
	if w.file != nil {
		_ = w.file.Close() // the file is discarded
		_ = os.Remove(w.file.Name())
	}
}

// adopt renames a checked and synced file of partial/ to the blob with that digest. The
// directory is not synced: losing the new name in a crash costs only another download, but
// each sync of a journal waits for the data of every other file being written.
func (c *Cache) adopt(path, hexDigest string) error {
	if err := os.Chmod(path, 0o644); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Dir(c.blob(hexDigest)), 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := os.Rename(path, c.blob(hexDigest)); err != nil {
		return err
	}
	c.fresh.Store(hexDigest, nil)
	return nil
}

// syncFile syncs a closed file.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// copyBytes copies until r or ctx ends.
func copyBytes(ctx context.Context, w io.Writer, r io.Reader) (int64, error) {
	var n int64
	buf := make([]byte, bufferSize)
	for {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		k, err := r.Read(buf)
		if k > 0 {
			m, werr := w.Write(buf[:k])
			n += int64(m)
			if werr != nil {
				return n, werr
			}
		}
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}
