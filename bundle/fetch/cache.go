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

// Cache stores content by its sha256. Builds and processes can share it. The package
// comment describes its layout and what survives a crash.
type Cache struct {
	dir   string
	locks keyedMutex
	fresh sync.Map // hex digests of the blobs that this Cache hashed when it stored them
}

// OpenCache opens the cache in dir, creates it if it does not exist, and removes abandoned
// partial files.
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

// Dir returns the cache's absolute path.
func (c *Cache) Dir() string { return c.dir }

// Has reports whether the cache has a blob with that digest and size. It does not read the
// content: the package comment describes when content is checked.
func (c *Cache) Has(hexDigest string, size int64) bool {
	n, ok := c.size(hexDigest)
	return ok && n == size
}

// size returns the size of a cached blob.
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
		return nil, fmt.Errorf("open cached blob: %q is not a sha256", hexDigest)
	}
	f, err := os.Open(c.blob(hexDigest))
	if err != nil {
		return nil, fmt.Errorf("open cached blob: %w", err)
	}
	touch(f)
	return f, nil
}

// Fresh reports whether this Cache stored the blob itself and hashed it then, so that a
// reader need not hash it again.
func (c *Cache) Fresh(hexDigest string) bool {
	_, ok := c.fresh.Load(hexDigest)
	return ok
}

// Discard removes a blob, for example a corrupt one, so that it is fetched again. A missing
// blob is not an error.
func (c *Cache) Discard(hexDigest string) error {
	if !isHexDigest(hexDigest) {
		return fmt.Errorf("discard cached blob: %q is not a sha256", hexDigest)
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

// Ages without modification after which partial files are removed.
const (
	sweepWrites    = 24 * time.Hour
	sweepDownloads = 30 * 24 * time.Hour
	sweepVisits    = 30 * 24 * time.Hour // the next run then downloads the metadata again
)

// sweep removes old partial files. A running download keeps writing to its file, so no file
// in use is that old.
func (c *Cache) sweep(now time.Time) error {
	if err := sweepDir(c.partial(""), now, func(name string) (time.Duration, bool) {
		if strings.HasPrefix(name, writePrefix) || strings.HasSuffix(name, ".new") { // durable creates *.new
			return sweepWrites, true
		}
		return sweepDownloads, strings.HasSuffix(name, partSuffix) || strings.HasSuffix(name, metaSuffix)
	}); err != nil {
		return err
	}
	return sweepDir(filepath.Join(c.dir, "visits"), now, func(string) (time.Duration, bool) { return sweepVisits, true })
}

// sweepDir removes the files of a folder that are older than the age that keep returns for
// them; other files are not touched.
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
			continue // already removed, or young
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// isHexDigest reports whether s is a sha256 as 64 lower-case hexadecimal digits.
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
