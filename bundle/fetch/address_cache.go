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

// visit records the content last seen at an address; the content is a blob of the cache.
type visit struct {
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"lastModified,omitempty"`
	SHA256       string `json:"sha256"`
}

// visitBytes is the maximum size of a record.
const visitBytes = 64 << 10

func (c *Cache) visitPath(key string) string { return filepath.Join(c.dir, "visits", key+".json") }

// readVisit returns the record of an address, empty if there is no usable one.
func (c *Cache) readVisit(key string) visit {
	f, err := os.Open(c.visitPath(key))
	if err != nil {
		return visit{}
	}
	defer func() { _ = f.Close() }() // opened for reading only
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

// intact reports whether the cache has a blob whose content matches its digest. It discards
// a corrupt blob: for unsigned metadata, no later check would find the damage.
func (c *Cache) intact(ctx context.Context, hexDigest string) bool {
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
	defer func() { _ = f.Close() }() // opened for reading only
	h := sha256.New()
	if _, err := copyBytes(ctx, h, f); err != nil {
		return false
	}
	if hex.EncodeToString(h.Sum(nil)) != hexDigest {
		_ = c.Discard(hexDigest) // if that fails, the next check finds it again
		return false
	}
	c.fresh.Store(hexDigest, nil)
	return true
}
