package rpm

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/xi2/xz"
)

// maxWindow is the maximum dictionary size of a decompressor in bytes; the highest
// standard level of xz uses this much.
const maxWindow = 64 << 20

// hashes contains the trusted checksum types, by their names in repomd.xml.
var hashes = map[string]func() hash.Hash{"sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New}

// checked is a reader that verifies size and checksum at its end.
type checked struct {
	r    io.Reader
	h    hash.Hash
	sum  string
	size int64 // -1: unknown
	max  int64
	n    int64
}

func newChecked(r io.Reader, c sum, size, limit int64) *checked {
	x := &checked{r: r, sum: c.Value, size: size, max: limit}
	if c.Kind != "" {
		x.h = hashes[c.Kind]()
	}
	return x
}

// Read returns an error together with the last bytes if size or checksum are wrong.
func (c *checked) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	if c.n > c.max || c.size >= 0 && c.n > c.size {
		return 0, fmt.Errorf("it is longer than %d bytes", min(c.max, map[bool]int64{true: c.size, false: c.max}[c.size >= 0]))
	}
	if c.h != nil {
		_, _ = c.h.Write(b[:n])
	}
	if errors.Is(err, io.EOF) {
		if c.size >= 0 && c.n != c.size {
			return n, fmt.Errorf("it has %d bytes, expected %d", c.n, c.size)
		}
		if c.h != nil {
			if got := hex.EncodeToString(c.h.Sum(nil)); got != c.sum {
				return n, fmt.Errorf("its checksum is %s, expected %s", got, c.sum)
			}
		}
	}
	return n, err
}

// expand decompresses a stream. The compression is detected from the first bytes, since
// file names can be misleading.
func expand(r io.Reader) (io.Reader, func(), error) {
	b := bufio.NewReaderSize(r, 1<<16)
	head, err := b.Peek(6)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	nothing := func() {}
	switch s := string(head); {
	case len(s) > 2 && s[:2] == "\x1f\x8b":
		z, err := gzip.NewReader(b)
		return z, nothing, err
	case len(s) > 4 && s[:4] == "\x28\xb5\x2f\xfd":
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	case s == "\xfd7zXZ\x00":
		z, err := xz.NewReader(b, maxWindow)
		return z, nothing, err
	case len(s) > 0 && (s[0] == '<' || s[0] == '-' || s[0] == '\n'):
		return b, nothing, nil
	}
	return nil, nil, errors.New("its compression is not gzip, zstd or xz")
}
