package fetch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mensylisir/kubexm/manifest/durable"
)

// Cache holds content by its sha256, shared between builds and processes. The
// package comment describes its layout and what survives a crash.
type Cache struct {
	dir   string
	locks keyedMutex
	fresh sync.Map // hex digests of the blobs that were hashed on their way in
}

// OpenCache opens the cache in dir, making it where there is none, and sweeps
// out partial files that nobody came back for.
func OpenCache(dir string) (*Cache, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for _, sub := range []string{"sha256", "partial", "derived", "visits"} {
		if err := durable.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	c := &Cache{dir: dir}
	if err := c.sweep(time.Now()); err != nil {
		return nil, err
	}
	return c, nil
}

// Dir is the cache's absolute path.
func (c *Cache) Dir() string { return c.dir }

// Has tells whether the cache holds a blob of that name and size. It reads no
// content: see the package comment for who does.
func (c *Cache) Has(hexDigest string, size int64) bool {
	n, ok := c.size(hexDigest)
	return ok && n == size
}

// size gives the size of a blob that is there.
func (c *Cache) size(hexDigest string) (int64, bool) {
	if !isHexDigest(hexDigest) {
		return 0, false
	}
	info, err := os.Lstat(c.blob(hexDigest))
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	return info.Size(), true
}

// Open opens a blob for reading. The caller hashes what it reads.
func (c *Cache) Open(hexDigest string) (*os.File, error) {
	if !isHexDigest(hexDigest) {
		return nil, fmt.Errorf("open cached blob: %q is no sha256", hexDigest)
	}
	f, err := os.Open(c.blob(hexDigest))
	if err != nil {
		return nil, fmt.Errorf("open cached blob: %w", err)
	}
	touch(f)
	return f, nil
}

// Fresh tells whether c itself brought the blob, hashing it on the way: who opens
// it need not hash it again. Of a blob that was there before only reading tells.
func (c *Cache) Fresh(hexDigest string) bool {
	_, ok := c.fresh.Load(hexDigest)
	return ok
}

// Discard removes a blob, as one found corrupt, so that it is fetched again.
// It is no error if the blob is not there.
func (c *Cache) Discard(hexDigest string) error {
	if !isHexDigest(hexDigest) {
		return fmt.Errorf("discard cached blob: %q is no sha256", hexDigest)
	}
	c.fresh.Delete(hexDigest)
	if err := os.Remove(c.blob(hexDigest)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("discard cached blob: %w", err)
	}
	return nil
}

func (c *Cache) blob(hexDigest string) string {
	return filepath.Join(c.dir, "sha256", hexDigest[:2], hexDigest)
}

func (c *Cache) partial(name string) string { return filepath.Join(c.dir, "partial", name) }

// How long nobody has to have touched a partial file before it is swept.
const (
	sweepWrites    = 24 * time.Hour
	sweepDownloads = 30 * 24 * time.Hour
	sweepVisits    = 30 * 24 * time.Hour // what was found there is asked for anew
)

// sweep removes old partial files. A download under way keeps writing to its
// file, so none in use is ever that old.
func (c *Cache) sweep(now time.Time) error {
	if err := sweepDir(c.partial(""), now, func(name string) (time.Duration, bool) {
		if strings.HasPrefix(name, writePrefix) || strings.HasSuffix(name, ".new") { // the second is what durable makes
			return sweepWrites, true
		}
		return sweepDownloads, strings.HasSuffix(name, partSuffix) || strings.HasSuffix(name, metaSuffix)
	}); err != nil {
		return err
	}
	return sweepDir(filepath.Join(c.dir, "visits"), now, func(string) (time.Duration, bool) { return sweepVisits, true })
}

// sweepDir removes the files of a folder that are older than keep says, where it
// knows them.
func sweepDir(dir string, now time.Time, keep func(name string) (time.Duration, bool)) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		most, known := keep(e.Name())
		if !known {
			continue
		}
		info, err := e.Info()
		if err != nil || now.Sub(info.ModTime()) < most {
			continue // gone meanwhile, or young
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// isHexDigest tells whether s is a sha256 as a blob's name has it: 64
// characters of lower-case hex.
func isHexDigest(s string) bool {
	if len(s) != 64 {
		return false
	}
	for _, r := range []byte(s) {
		if (r < '0' || r > '9') && (r < 'a' || r > 'f') {
			return false
		}
	}
	return true
}
