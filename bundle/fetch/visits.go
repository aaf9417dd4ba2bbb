package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"github.com/mensylisir/kubexm/manifest/durable"
)

// visit is what was found at an address, to be asked for again: the content is a
// blob of the cache.
type visit struct {
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"lastModified,omitempty"`
	SHA256       string `json:"sha256"`
}

// visitBytes bounds a record.
const visitBytes = 64 << 10

func (c *Cache) visitPath(key string) string { return filepath.Join(c.dir, "visits", key+".json") }

// readVisit gives the record of an address, empty if there is none that can be used.
func (c *Cache) readVisit(key string) visit {
	f, err := os.Open(c.visitPath(key))
	if err != nil {
		return visit{}
	}
	defer func() { _ = f.Close() }() // it was only read
	var v visit
	if json.NewDecoder(io.LimitReader(f, visitBytes)).Decode(&v) != nil || !isHexDigest(v.SHA256) {
		return visit{}
	}
	return v
}

func (c *Cache) writeVisit(key string, v visit) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return durable.WriteFile(c.visitPath(key), append(text, '\n'), 0o644)
}

// sound tells whether the cache holds a blob that is what its name says. What is not
// is thrown away: of metadata that nobody signed, no reader would notice.
func (c *Cache) sound(ctx context.Context, hexDigest string) bool {
	if _, ok := c.size(hexDigest); !ok {
		return false
	}
	if c.Fresh(hexDigest) {
		return true
	}
	f, err := c.Open(hexDigest)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // it was only read
	h := sha256.New()
	if _, err := copyBytes(ctx, h, f); err != nil {
		return false
	}
	if hex.EncodeToString(h.Sum(nil)) != hexDigest {
		_ = c.Discard(hexDigest) // if it cannot be, it is found again
		return false
	}
	c.fresh.Store(hexDigest, nil)
	return true
}
