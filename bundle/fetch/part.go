package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/mensylisir/kubexm/manifest/durable"
)

const (
	partSuffix = ".part"
	metaSuffix = ".part.meta"
)

// partMeta is the description of a partial file, stored beside it, to continue it.
type partMeta struct {
	Source       string `json:"source"` // sha256 of the requested address, which may contain a secret
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"lastModified,omitempty"`
	Size         int64  `json:"size"` // of the complete file, -1 if the server did not state it
}

// part is a partial file in the cache. Only the holder of its key's lock uses it.
type part struct {
	cache    *Cache
	path     string
	meta     partMeta
	hash     hash.Hash
	have     int64 // bytes in the file, and in hash
	reported int64 // bytes reported to the Transfer

	synced bool // all received bytes are synced
}

func (c *Cache) part(key string) *part {
	return &part{cache: c, path: c.partial(key + partSuffix), hash: sha256.New()}
}

func (p *part) metaPath() string { return strings.TrimSuffix(p.path, partSuffix) + metaSuffix }

func (p *part) digest() string { return hex.EncodeToString(p.hash.Sum(nil)) }

// load updates p from the file, and drops the file if it cannot be continued to j.
func (p *part) load(ctx context.Context, j *job, source string, t Transfer) error {
	info, err := os.Stat(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return p.drop(t)
	}
	if err != nil {
		return err
	}
	if p.have != info.Size() || p.have == 0 {
		b, err := os.ReadFile(p.metaPath())
		if err != nil || json.Unmarshal(b, &p.meta) != nil {
			return p.drop(t)
		}
	}
	if !p.continuable(j, info.Size(), source) {
		return p.drop(t)
	}
	if p.have != info.Size() {
		if err := p.rehash(ctx); err != nil {
			return err
		}
	}
	t.Add(p.have - p.reported)
	p.reported = p.have
	return nil
}

// continuable reports whether size bytes, described by p.meta, can be the beginning of j.
// If the digest is known, the check at the end decides. If it is not, the server must
// confirm that the file is unchanged, and this process must have written the bytes itself:
// after a power loss the file may have holes that no check would find.
func (p *part) continuable(j *job, size int64, source string) bool {
	total := p.meta.total(j)
	if size == 0 || (total >= 0 && size > total) {
		return false
	}
	if j.sha256 != "" {
		return true
	}
	return p.have == size && p.meta.Source == source && p.meta.validator() != "" && size != total
}

// total is the size of the complete file of j, or -1.
func (m *partMeta) total(j *job) int64 {
	if j.size >= 0 {
		return j.size
	}
	return m.Size
}

// validator returns the value of If-Range: a strong ETag, or the time of the last change.
func (m *partMeta) validator() string {
	if m.ETag != "" && !strings.HasPrefix(m.ETag, "W/") {
		return m.ETag
	}
	return m.LastModified
}

// rehash hashes the existing bytes of the file.
func (p *part) rehash(ctx context.Context) error {
	f, err := os.Open(p.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	p.hash.Reset()
	p.have, err = copyBytes(ctx, p.hash, f)
	return err
}

// begin records the server's description of a file that is downloaded from its beginning.
func (p *part) begin(m partMeta) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	p.meta, p.have = m, 0
	p.hash.Reset()
	return durable.WriteFile(p.metaPath(), b, 0o644)
}

// drop removes the file and resets p.
func (p *part) drop(t Transfer) error {
	if p.reported != 0 {
		t.Add(-p.reported)
	}
	p.meta, p.have, p.reported = partMeta{Size: -1}, 0, 0
	p.hash.Reset()
	return p.remove()
}

// remove removes the file and its meta, the file first: a meta file alone is harmless.
func (p *part) remove() error {
	for _, path := range []string{p.path, p.metaPath()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove partial download: %w", err)
		}
	}
	return nil
}

// keep stores the complete and checked file as the blob of its digest.
func (p *part) keep() error {
	err := p.sync()
	if err == nil {
		err = p.cache.adopt(p.path, p.digest())
	}
	if err != nil {
		return fmt.Errorf("put into cache: %w", err)
	}
	return p.remove()
}

// sync syncs the file once.
func (p *part) sync() error {
	if p.synced {
		return nil
	}
	if err := syncFile(p.path); err != nil {
		return err
	}
	p.synced = true
	return nil
}

// received is the body of a response being written to the file: every byte is hashed and
// counted.
type received struct {
	io.ReadCloser
	part     *part
	job      *job
	transfer Transfer
}

// Read fails if the body is too long; grab detects one that is too short. Before it returns
// io.EOF, it syncs the file: grab ignores the error of closing the file, which may be the
// only report of lost bytes.
func (r *received) Read(b []byte) (int, error) {
	n, err := r.ReadCloser.Read(b)
	p := r.part
	if n > 0 {
		p.synced = false
	}
	if err == io.EOF {
		if n > 0 {
			err = nil // return io.EOF in the next call, after grab has written these bytes
		} else if err := p.sync(); err != nil {
			return 0, err
		}
	}
	p.hash.Write(b[:n])
	p.have += int64(n)
	p.reported += int64(n)
	r.transfer.Add(int64(n))
	total := p.meta.total(r.job)
	if total >= 0 && p.have > total {
		return n, r.job.sizeError(p.have)
	}
	if r.job.most > 0 && p.have > r.job.most {
		return n, fmt.Errorf("%s has more than %d bytes", r.job.name, r.job.most)
	}
	return n, err
}
