package apt

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/xi2/xz"

	"github.com/mensylisir/kubexm/packaging"
)

// The maximum sizes of downloads, in bytes.
const (
	mostRelease = 16 << 20
	mostIndex   = 512 << 20 // compressed
	mostText    = 2 << 30   // of an uncompressed index, if the release does not list its size
	// mostDictionary is what xz at its strongest asks for.
	mostDictionary = 64 << 20
)

var errLong = errors.New("it is too long")

// download reads a URL, at most limit bytes; likely is the expected size.
func download(ctx context.Context, web packaging.Web, url string, likely, limit int64) ([]byte, error) {
	r, err := web.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var b bytes.Buffer
	b.Grow(int(likely) + bytes.MinRead)
	if _, err := b.ReadFrom(io.LimitReader(r, limit+1)); err != nil {
		return nil, fmt.Errorf("%s: %w", redacted(url), err)
	}
	if int64(b.Len()) > limit {
		return nil, fmt.Errorf("%s: %w: more than %d bytes", redacted(url), errLong, limit)
	}
	return b.Bytes(), nil
}

// fetchRelease downloads a repository's release, and verifies its signature, its dates
// and the expected values of the source.
func fetchRelease(ctx context.Context, web packaging.Web, s Source, keys *keyrings, now time.Time) (*Release, error) {
	text, signed, signatures, err := signedRelease(ctx, web, s)
	if err != nil {
		return nil, err
	}
	ring, err := keys.of(s)
	if err != nil {
		return nil, err
	}
	by, err := verify(s.String(), signed, signatures, ring, now)
	if err != nil {
		return nil, err
	}
	r, err := parseRelease(text)
	if err != nil {
		return nil, &Refusal{Repository: s.String(), Reason: ErrMalformed, Detail: "its Release: " + err.Error()}
	}
	r.SignedBy = by
	return r, r.check(s, now)
}

// signedRelease downloads InRelease, or else Release and Release.gpg.
func signedRelease(ctx context.Context, web packaging.Web, s Source) (text, signed []byte, signatures io.Reader, err error) {
	malformed := func(name string, err error) error {
		return &Refusal{Repository: s.String(), Reason: ErrMalformed, Detail: name + ": " + err.Error()}
	}
	file, err := download(ctx, web, s.index("InRelease"), 0, mostRelease)
	if err == nil {
		text, signed, signatures, err = clearSigned(file)
		if err != nil {
			return nil, nil, nil, malformed("InRelease", err)
		}
		return text, signed, signatures, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil, fmt.Errorf("%s: %w", s, err)
	}
	text, err = download(ctx, web, s.index("Release"), 0, mostRelease)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%s: neither InRelease nor Release: %w", s, err)
	}
	file, err = download(ctx, web, s.index("Release.gpg"), 0, mostRelease)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil, &Refusal{Repository: s.String(), Reason: ErrUnsigned, Detail: "it has no Release.gpg beside its Release"}
	}
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%s: %w", s, err)
	}
	if signatures, err = detached(file); err != nil {
		return nil, nil, nil, malformed("Release.gpg", err)
	}
	return text, text, signatures, nil
}

// packings are the compressions of an index in order of preference. xz is smaller, but
// takes ten times as long to decompress and needs memory for its dictionary.
var packings = []string{".zst", ".gz", ".xz", ""}

// fetchIndex downloads an index that the release lists, in any available compression, and
// returns its text. The digest is verified before the content is read. The result is nil
// if the release lists no index of that name.
func fetchIndex(ctx context.Context, web packaging.Web, s Source, r *Release, name string) (io.ReadCloser, error) {
	listed := false
	var missing error
	for _, packing := range packings {
		want, ok := r.files[name+packing]
		if !ok {
			continue
		}
		listed = true
		b, err := fetchListed(ctx, web, s, r, name+packing, want)
		if errors.Is(err, fs.ErrNotExist) {
			missing = err
			continue
		}
		if err != nil {
			return nil, err
		}
		limit := int64(mostText)
		if plain, ok := r.files[name]; ok {
			limit = plain.size
		}
		text, err := unpack(b, packing, limit)
		if err != nil {
			return nil, &Refusal{Repository: s.String(), Reason: ErrMalformed, Detail: name + packing + ": " + err.Error()}
		}
		return text, nil
	}
	if listed {
		return nil, fmt.Errorf("%s: %s is listed but does not exist: %w", s, name, missing)
	}
	return nil, nil
}

const tryAgain = "the mirror may be updating: run the command again later, or use another mirror"

// fetchListed downloads one file, by its digest if the repository supports by-hash URLs:
// these stay valid while the repository is updated.
func fetchListed(ctx context.Context, web packaging.Web, s Source, r *Release, name string, want digest) ([]byte, error) {
	if want.size > mostIndex {
		return nil, &Refusal{Repository: s.String(), Reason: ErrMalformed, Detail: fmt.Sprintf("%s has %d bytes", name, want.size)}
	}
	addresses := []string{s.index(name)}
	if r.byHash && !s.NoHash {
		folder := s.index(name)[:len(s.index(name))-len(path.Base(name))]
		addresses = append([]string{folder + "by-hash/SHA256/" + want.sha256}, addresses...)
	}
	var err error
	for _, address := range addresses {
		var b []byte
		b, err = download(ctx, web, address, want.size, want.size)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case errors.Is(err, errLong):
			return nil, &Refusal{Repository: s.String(), Reason: ErrDigest, Advice: tryAgain,
				Detail: fmt.Sprintf("%s has more than the expected %d bytes", name, want.size)}
		case err != nil:
			return nil, fmt.Errorf("%s: %w", s, err)
		}
		sum := sha256.Sum256(b)
		if have := hex.EncodeToString(sum[:]); have != want.sha256 || int64(len(b)) != want.size {
			return nil, &Refusal{Repository: s.String(), Reason: ErrDigest, Advice: tryAgain,
				Detail: fmt.Sprintf("%s has %d bytes and sha256 %s, expected %d and %s", name, len(b), have, want.size, want.sha256)}
		}
		return b, nil
	}
	return nil, err
}

// unpack decompresses an index. Reading returns an error after limit bytes.
func unpack(b []byte, packing string, limit int64) (io.ReadCloser, error) {
	in := bytes.NewReader(b)
	var out io.ReadCloser
	switch packing {
	case ".zst":
		d, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostDictionary*2))
		if err != nil {
			return nil, err
		}
		out = d.IOReadCloser()
	case ".gz":
		d, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		out = d
	case ".xz":
		d, err := xz.NewReader(in, mostDictionary)
		if err != nil {
			return nil, err
		}
		out = io.NopCloser(d)
	default:
		out = io.NopCloser(in)
	}
	return &bounded{ReadCloser: out, left: limit}, nil
}

// bounded is a reader that returns an error after the limit.
type bounded struct {
	io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errors.New("its uncompressed size is larger than in its release")
	}
	return n, err
}
