package op

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"sync"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// recordCache holds the entries of all records of a host while one step looks at its
// resources. It is read with one command: a step has up to twenty resources, and each
// command to a host takes longer than reading its file. A parallel step of the same host
// has other resources, so that what it writes does not matter here.
type recordCache struct {
	mu      sync.Mutex
	host    *steps.Host
	read    bool
	failed  bool // the entries could not be read together: each is read on its own
	entries map[string][]byte
	written map[string]bool // entries of this step: while there is one, nobody removes the folder
}

type recordCacheKey struct{}

// withRecords returns a context in which ReadRecord reads the records of h once.
func withRecords(ctx context.Context, h *steps.Host) context.Context {
	return context.WithValue(ctx, recordCacheKey{}, &recordCache{host: h})
}

// cacheOf returns the cache of ctx, or nil if it has none for h.
func cacheOf(ctx context.Context, h *steps.Host) *recordCache {
	if c, ok := ctx.Value(recordCacheKey{}).(*recordCache); ok && c.host == h {
		return c
	}
	return nil
}

// entry returns the text of the entry at file, or fs.ErrNotExist.
func (c *recordCache) entry(ctx context.Context, file string) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.read {
		entries, err := c.host.Lines(ctx, RecordDir(c.host), suffixEntry)
		var refused *runner.CmdError // one of the files is empty, or is going away
		c.failed = errors.As(err, &refused) || errors.Is(err, runner.ErrTooLarge)
		if err != nil && !c.failed && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		c.read, c.entries = true, entries
	}
	if c.failed {
		return c.host.ReadFile(ctx, file)
	}
	text, ok := c.entries[path.Base(file)]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return text, nil
}

// set notes that the entry at file was written, or deleted if text is nil.
func (c *recordCache) set(file string, text []byte) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.written == nil {
		c.written = map[string]bool{}
	}
	if c.written[file] = true; text == nil {
		delete(c.written, file)
	}
	switch {
	case !c.read || c.failed:
	case text == nil:
		delete(c.entries, path.Base(file))
	default:
		if c.entries == nil {
			c.entries = map[string][]byte{}
		}
		c.entries[path.Base(file)] = text
	}
}

// hasFolder reports whether the folder of the records exists for certain.
func (c *recordCache) hasFolder() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.written) > 0
}
