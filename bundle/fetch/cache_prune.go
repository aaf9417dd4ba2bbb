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

// ErrInUse means that the cache was not pruned because another command uses it.
var ErrInUse = errors.New("the cache is in use")

// useLock is the lock file of a cache: shared for users of the cache, exclusive for Prune.
const useLock = "in-use.lock"

// touchEvery is the precision of a blob's time of last use.
const touchEvery = time.Hour

// Hold prevents pruning until release is called. It waits while the cache is being pruned.
// Any number of processes can hold it at the same time.
func (c *Cache) Hold(ctx context.Context) (release func(), err error) {
	l := flock.New(filepath.Join(c.dir, useLock))
	if ok, err := l.TryRLockContext(ctx, lockPoll); err != nil || !ok {
		return nil, errors.Join(fmt.Errorf("lock cache %s: %w", c.dir, err), l.Close())
	}
	return func() { _ = l.Close() }, nil
}

// Entry is one blob of a cache, or one unfinished download.
type Entry struct {
	Name    string    `json:"name"` // sha256 in hex, or the name of a partial file
	Size    int64     `json:"size"` // bytes
	Used    time.Time `json:"used"` // time of last use, to the hour
	Partial bool      `json:"partial"`

	path string
}

// List returns everything in the cache, the most recently used first.
func (c *Cache) List() ([]Entry, error) {
	var all []Entry
	for _, sub := range []string{"sha256", "partial"} {
		err := filepath.WalkDir(filepath.Join(c.dir, sub), func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // removed in the meantime
			}
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			partial := sub == "partial"
			if !partial && !isHexDigest(d.Name()) || filepath.Ext(path) == ".lock" {
				return nil // not a file of the cache
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

// PruneOptions specify what to keep. The zero value keeps nothing.
type PruneOptions struct {
	UsedSince time.Time // keep only what was used after this time; zero: no limit
	MaxSize   int64     // keep at most so many bytes, the most recently used first; 0: no limit if UsedSince is set, else keep nothing
	DryRun    bool
}

// PruneResult is the result of a Prune.
type PruneResult struct {
	Removed        int   `json:"removed"`
	RemovedBytes   int64 `json:"removedBytes"`
	Remaining      int   `json:"left"`
	RemainingBytes int64 `json:"leftBytes"`
}

// Prune removes what o does not keep, and forgets remembered bundles that are gone. While another command holds the cache, it removes
// nothing and returns ErrInUse.
func (c *Cache) Prune(ctx context.Context, o PruneOptions) (PruneResult, error) {
	var p PruneResult
	l := flock.New(filepath.Join(c.dir, useLock))
	defer func() { _ = l.Close() }() // closing releases the lock
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
	if !o.DryRun {
		if err := c.forget(); err != nil {
			return p, fmt.Errorf("prune cache: %w", err)
		}
	}
	for _, e := range all {
		if err := ctx.Err(); err != nil {
			return p, err
		}
		if o.keeps(e, p.RemainingBytes) {
			p.Remaining++
			p.RemainingBytes += e.Size
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

// keeps reports whether to keep e, given the size of the entries that were used later.
func (o PruneOptions) keeps(e Entry, beside int64) bool {
	switch {
	case o.UsedSince.IsZero() && o.MaxSize == 0:
		return false
	case e.Used.Before(o.UsedSince):
		return false
	}
	return o.MaxSize == 0 || beside+e.Size <= o.MaxSize
}

// touch sets a blob's time of last use. Failure is ignored, for example on a read-only file
// system.
func touch(f *os.File) {
	if info, err := f.Stat(); err == nil && time.Since(info.ModTime()) > touchEvery {
		now := time.Now()
		_ = os.Chtimes(f.Name(), now, now)
	}
}
