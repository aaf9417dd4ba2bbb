package upstream

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"math/rand/v2"
	"sort"
)

// Content is bytes that can be made again at any offset, so that a server can
// answer a range of a large file and hold none of it.
type Content interface {
	io.ReaderAt
	Size() int64 // bytes
}

// text is content that is written out.
func text(s string) Content { return bytes.NewReader([]byte(s)) }

// block is how many bytes one seeding of the generator gives: small, because a
// read that begins inside a block makes the whole of it.
const block = 4096

// noise is pseudo-random content named after seed. A share of it repeats
// itself, as the tables and strings of an executable do.
type noise struct {
	seed   [32]byte
	size   int64
	random int // bytes of each block that do not compress
}

// program is noise that zstd makes about two fifths smaller, as it does with
// an executable.
func program(name string, size int64) Content {
	return &noise{seed: sha256.Sum256([]byte(name)), size: size, random: block * 55 / 100}
}

// packed is noise that does not compress, as a file inside an image layer that
// arrives compressed.
func packed(name string, size int64) Content {
	return &noise{seed: sha256.Sum256([]byte(name)), size: size, random: block}
}

func (n *noise) Size() int64 { return n.size }

// ReadAt implements io.ReaderAt.
func (n *noise) ReadAt(p []byte, off int64) (int, error) {
	if off >= n.size {
		return 0, io.EOF
	}
	want := int(min(int64(len(p)), n.size-off))
	var buf [block]byte
	for done := 0; done < want; {
		at := off + int64(done)
		in := int(at % block)
		if in == 0 && want-done >= block {
			n.fill((*[block]byte)(p[done:done+block]), at/block)
			done += block
			continue
		}
		n.fill(&buf, at/block)
		done += copy(p[done:want], buf[in:])
	}
	if want < len(p) {
		return want, io.EOF
	}
	return want, nil
}

// fill makes the block with the given number.
func (n *noise) fill(b *[block]byte, number int64) {
	seed := n.seed
	binary.LittleEndian.PutUint64(seed[24:], binary.LittleEndian.Uint64(seed[24:])^uint64(number)) //nolint:gosec // a block's number is never negative
	var rng rand.ChaCha8
	rng.Seed(seed)
	_, _ = rng.Read(b[:n.random]) // never fails
	for at := n.random; at < block; {
		// Runs of bytes that were there before: what a compressor looks for.
		word := int(b[at%n.random]) % max(n.random-24, 1)
		at += copy(b[at:], b[word:word+24])
	}
}

// chain is several contents, one after the other.
type chain struct {
	parts []Content
	ends  []int64
}

// concat joins parts into one content.
func concat(parts ...Content) Content {
	c := &chain{parts: parts, ends: make([]int64, len(parts))}
	end := int64(0)
	for i, p := range parts {
		end += p.Size()
		c.ends[i] = end
	}
	return c
}

func (c *chain) Size() int64 {
	if len(c.ends) == 0 {
		return 0
	}
	return c.ends[len(c.ends)-1]
}

// ReadAt implements io.ReaderAt.
func (c *chain) ReadAt(p []byte, off int64) (int, error) {
	done := 0
	i := sort.Search(len(c.ends), func(i int) bool { return c.ends[i] > off })
	for ; i < len(c.parts) && done < len(p); i++ {
		begin := c.ends[i] - c.parts[i].Size()
		n, err := c.parts[i].ReadAt(p[done:], off+int64(done)-begin)
		done += n
		if err != nil && !errors.Is(err, io.EOF) {
			return done, err
		}
	}
	if done < len(p) {
		return done, io.EOF
	}
	return done, nil
}

// copyTo writes the whole of c to w.
func copyTo(w io.Writer, c Content) error {
	_, err := io.CopyBuffer(w, io.NewSectionReader(c, 0, c.Size()), make([]byte, 64<<10))
	return err
}

// sha256Of gives the sha256 of the whole of c in lower-case hex.
func sha256Of(c Content) (string, error) {
	h := sha256.New()
	if err := copyTo(h, c); err != nil {
		return "", err
	}
	return sum(h), nil
}

func sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// size picks a size between low and high bytes, always the same for a name,
// times scale.
func size(name string, low, high int64, scale float64) int64 {
	h := sha256.Sum256([]byte("size of " + name))
	span := uint64(high - low) //nolint:gosec // high is above low
	pick := low + int64(binary.LittleEndian.Uint64(h[:])%span)
	return max(int64(float64(pick)*scale), 64)
}

// choose picks a number below n, always the same for a name.
func choose(name string, n uint64) int {
	h := sha256.Sum256([]byte("choice of " + name))
	return int(binary.LittleEndian.Uint64(h[:]) % n) //nolint:gosec // below n
}
