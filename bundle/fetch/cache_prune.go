package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"
)

// ErrInUse is why a cache is not pruned: a command works with it.
var ErrInUse = errors.New("the cache is in use")

// useLock names the file that whoever works with a cache holds shared, and who
// removes from it alone.
const useLock = "in-use.lock"

// touchEvery is how old the mark of a blob's last use may get.
const touchEvery = time.Hour

// Hold keeps the cache from being pruned until release is called. It waits while
// it is being pruned. Several may hold it at once, in any process.
func (c *Cache) Hold(ctx context.Context) (release func(), err error) {
	l := flock.New(filepath.Join(c.dir, useLock))
	if ok, err := l.TryRLockContext(ctx, lockPoll); err != nil || !ok {
		return nil, errors.Join(fmt.Errorf("hold cache %s: %w", c.dir, err), l.Close())
	}
	return func() { _ = l.Close() }, nil
}

// Entry is one blob of a cache, or one unfinished download.
type Entry struct {
	Name    string    `json:"name"` // sha256 in hex, or a partial file's name
	Size    int64     `json:"size"` // bytes
	Used    time.Time `json:"used"` // when it was last read or written, to the hour
	Partial bool      `json:"partial"`

	path string
}

// List gives everything in the cache, what was used last first.
func (c *Cache) List() ([]Entry, error) {
	var all []Entry
	for _, sub := range []string{"sha256", "partial"} {
		err := filepath.WalkDir(filepath.Join(c.dir, sub), func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // gone meanwhile
			}
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			partial := sub == "partial"
			if !partial && !isHexDigest(d.Name()) || filepath.Ext(path) == ".lock" {
				return nil // not one of the cache's
			}
			info, err := d.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			all = append(all, Entry{Name: d.Name(), Size: info.Size(), Used: info.ModTime().UTC(), Partial: partial, path: path})
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list cache: %w", err)
		}
	}
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.Name, b.Name)) })
	return all, nil
}

// PruneOptions says what may stay. With the zero value nothing does.
type PruneOptions struct {
	UsedSince time.Time // what was used after it may stay; zero: whenever it was used
	MaxSize   int64     // bytes that may stay, what was used last before the rest; 0 is no bound with UsedSince, else nothing stays
	DryRun    bool
}

// Pruned says what a Prune removed and what is left.
type Pruned struct {
	Removed      int   `json:"removed"`
	RemovedBytes int64 `json:"removedBytes"`
	Left         int   `json:"left"`
	LeftBytes    int64 `json:"leftBytes"`
}

// Prune removes what o does not let stay. While anybody holds the cache it
// removes nothing and gives ErrInUse.
func (c *Cache) Prune(ctx context.Context, o PruneOptions) (Pruned, error) {
	var p Pruned
	l := flock.New(filepath.Join(c.dir, useLock))
	defer func() { _ = l.Close() }() // a lock that is let go either way
	ok, err := l.TryLock()
	if err != nil {
		return p, fmt.Errorf("prune cache: %w", err)
	}
	if !ok {
		return p, fmt.Errorf("prune cache %s: %w", c.dir, ErrInUse)
	}
	all, err := c.List()
	if err != nil {
		return p, err
	}
	for _, e := range all {
		if err := ctx.Err(); err != nil {
			return p, err
		}
		if o.keeps(e, p.LeftBytes) {
			p.Left++
			p.LeftBytes += e.Size
			continue
		}
		if !o.DryRun {
			if err := os.Remove(e.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return p, fmt.Errorf("prune cache: %w", err)
			}
		}
		p.Removed++
		p.RemovedBytes += e.Size
	}
	return p, nil
}

// keeps tells whether e may stay beside so many bytes of what was used later.
func (o PruneOptions) keeps(e Entry, beside int64) bool {
	switch {
	case o.UsedSince.IsZero() && o.MaxSize == 0:
		return false
	case e.Used.Before(o.UsedSince):
		return false
	}
	return o.MaxSize == 0 || beside+e.Size <= o.MaxSize
}

// touch marks a blob as used now. Its content stays; who cannot mark it, as on a
// file system that is only read, goes without.
func touch(f *os.File) {
	if info, err := f.Stat(); err == nil && time.Since(info.ModTime()) > touchEvery {
		now := time.Now()
		_ = os.Chtimes(f.Name(), now, now)
	}
}
