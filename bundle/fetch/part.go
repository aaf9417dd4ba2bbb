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

// partMeta is remembered beside a partial file, to continue it.
type partMeta struct {
	Source       string `json:"source"` // sha256 of the address asked: the address may hold a secret
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"lastModified,omitempty"`
	Size         int64  `json:"size"` // of the whole file, -1 if the server did not say
}

// part is a file on its way into the cache. Who holds its key's lock works on it.
type part struct {
	cache *Cache
	path  string
	meta  partMeta
	hash  hash.Hash
	have  int64 // bytes in the file, and in hash
	told  int64 // bytes that the Transfer was told of

	synced bool // all that came is on the disk
}

func (c *Cache) part(key string) *part {
	return &part{cache: c, path: c.partial(key + partSuffix), hash: sha256.New()}
}

func (p *part) metaPath() string { return strings.TrimSuffix(p.path, partSuffix) + metaSuffix }

func (p *part) digest() string { return hex.EncodeToString(p.hash.Sum(nil)) }

// load brings p in line with the file, and drops the file if it cannot become
// what j asks for.
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
	t.Add(p.have - p.told)
	p.told = p.have
	return nil
}

// continuable tells whether size bytes, loaded from what p.meta says, can be
// the beginning of what j asks for. Where the digest is known it decides in the
// end; where it is not, the server has to vouch that the file is still the same, and
// this process that it wrote what is there: after a loss of power the file may have
// holes, which nothing would find.
func (p *part) continuable(j *job, size int64, source string) bool {
	total := p.total(j)
	if size == 0 || (total >= 0 && size > total) {
		return false
	}
	if j.sha256 != "" {
		return true
	}
	return p.have == size && p.meta.Source == source && p.validator() != "" && size != total
}

// total is the size of the whole file, or -1.
func (p *part) total(j *job) int64 {
	if j.size >= 0 {
		return j.size
	}
	return p.meta.Size
}

// validator is what to send as If-Range: an ETag that promises equal bytes, or
// the time of the last change.
func (p *part) validator() string {
	if p.meta.ETag != "" && !strings.HasPrefix(p.meta.ETag, "W/") {
		return p.meta.ETag
	}
	return p.meta.LastModified
}

// rehash reads what is there into the hash.
func (p *part) rehash(ctx context.Context) error {
	f, err := os.Open(p.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	p.hash.Reset()
	p.have, err = copyBytes(ctx, p.hash, f)
	return err
}

// begin remembers what the server says of a file that now comes from its start.
func (p *part) begin(m partMeta) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	p.meta, p.have = m, 0
	p.hash.Reset()
	return durable.WriteFile(p.metaPath(), b, 0o644)
}

// drop removes the file and starts p over.
func (p *part) drop(t Transfer) error {
	if p.told != 0 {
		t.Add(-p.told)
	}
	p.meta, p.have, p.told = partMeta{Size: -1}, 0, 0
	p.hash.Reset()
	return p.remove()
}

// remove removes the file and its meta, the file first: a meta alone does no harm.
func (p *part) remove() error {
	for _, path := range []string{p.path, p.metaPath()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove partial download: %w", err)
		}
	}
	return nil
}

// keep makes the whole and checked file the blob of its digest.
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

// sync makes the file's bytes durable, once.
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

// received is the body of an answer on its way into the file: every byte is
// hashed and counted as it passes.
type received struct {
	io.ReadCloser
	part     *part
	job      *job
	transfer Transfer
}

// Read reads on, and ends with an error where the body is too long. grab tells
// one that is too short. Before it says that this was all, what came is on the disk:
// grab closes the file without a look at the error, and a close may be the one call
// that tells of bytes that were lost.
func (r *received) Read(b []byte) (int, error) {
	n, err := r.ReadCloser.Read(b)
	p := r.part
	if n > 0 {
		p.synced = false
	}
	if err == io.EOF {
		if n > 0 {
			err = nil // and again at the next call, when grab has written these
		} else if err := p.sync(); err != nil {
			return 0, err
		}
	}
	p.hash.Write(b[:n])
	p.have += int64(n)
	p.told += int64(n)
	r.transfer.Add(int64(n))
	total := p.total(r.job)
	if total >= 0 && p.have > total {
		return n, r.job.sizeError(p.have)
	}
	if r.job.most > 0 && p.have > r.job.most {
		return n, fmt.Errorf("%s has more than %d bytes", r.job.name, r.job.most)
	}
	return n, err
}
