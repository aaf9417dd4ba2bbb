package upstream

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"path"
	"sort"
	"strings"
	"time"
)

// released is when every stand-in was made: a fixed time, so that the bytes are
// the same every day.
var released = time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)

// entry is one file of a tar archive.
type entry struct {
	name string
	mode int64
	body Content
}

// archive lays entries out as a tar, each folder before what is in it.
func archive(entries []entry) (Content, error) {
	var parts []Content
	seen := map[string]bool{}
	add := func(h *tar.Header, body Content) error {
		head, err := header(h)
		if err != nil {
			return err
		}
		parts = append(parts, bytes.NewReader(head))
		if body != nil {
			parts = append(parts, body, text(strings.Repeat("\x00", int(-body.Size()&511))))
		}
		return nil
	}
	for _, e := range entries {
		for _, dir := range folders(e.name) {
			if seen[dir] {
				continue
			}
			seen[dir] = true
			if err := add(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755, ModTime: released}, nil); err != nil {
				return nil, err
			}
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: e.body.Size(), ModTime: released}
		if err := add(h, e.body); err != nil {
			return nil, err
		}
	}
	return concat(append(parts, text(strings.Repeat("\x00", 1024)))...), nil
}

// folders lists the folders above name, the outermost first, as tar spells them.
func folders(name string) []string {
	var dirs []string
	for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
		dirs = append(dirs, dir+"/")
	}
	if strings.HasPrefix(name, "./") {
		for i := range dirs {
			dirs[i] = "./" + dirs[i]
		}
		dirs = append(dirs, "./")
	}
	sort.Strings(dirs)
	return dirs
}

// header gives the blocks that archive/tar writes for h.
func header(h *tar.Header) ([]byte, error) {
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(h); err != nil {
		return nil, fmt.Errorf("tar header of %s: %w", h.Name, err)
	}
	return b.Bytes(), nil
}

// gzipped is a gzip file of stored blocks around inner. It is longer than what
// it holds; in return its bytes follow from inner alone and any of them can be
// made without those before.
type gzipped struct {
	inner   Content
	crc     uint32
	digest  string // sha256 of the gzip file
	content string // sha256 of inner
}

const (
	gzipHead   = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" // no name, no time, unknown system
	storedMax  = 65535                                      // bytes of one stored block
	storedHead = 5                                          // bytes before them
)

// compress wraps inner. It reads the whole of it once.
func compress(inner Content) (*gzipped, error) {
	g := &gzipped{inner: inner}
	in, out, crc := sha256.New(), sha256.New(), crc32.NewIEEE()
	io.WriteString(out, gzipHead) //nolint:errcheck // a hash takes every write
	buf := make([]byte, storedMax)
	for b := range g.blocks() {
		n := g.blockSize(b)
		if _, err := inner.ReadAt(buf[:n], b*storedMax); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		for _, h := range []hash.Hash{in, crc, out} {
			if h == out {
				h.Write(g.blockHead(b))
			}
			h.Write(buf[:n])
		}
	}
	g.crc = crc.Sum32()
	out.Write(g.tail())
	g.digest, g.content = sum(out), sum(in)
	return g, nil
}

// blocks counts the stored blocks; an empty file has one.
func (g *gzipped) blocks() int64 { return max((g.inner.Size()+storedMax-1)/storedMax, 1) }

func (g *gzipped) blockSize(b int64) int64 { return min(g.inner.Size()-b*storedMax, storedMax) }

func (g *gzipped) blockHead(b int64) []byte {
	head := make([]byte, storedHead)
	if b == g.blocks()-1 {
		head[0] = 1
	}
	n := uint16(g.blockSize(b)) //nolint:gosec // at most storedMax
	binary.LittleEndian.PutUint16(head[1:], n)
	binary.LittleEndian.PutUint16(head[3:], ^n)
	return head
}

func (g *gzipped) tail() []byte {
	tail := binary.LittleEndian.AppendUint32(nil, g.crc)
	return binary.LittleEndian.AppendUint32(tail, uint32(g.inner.Size())) //nolint:gosec // modulo 2^32, as the format says
}

func (g *gzipped) Size() int64 {
	return int64(len(gzipHead)) + g.blocks()*storedHead + g.inner.Size() + 8
}

// ReadAt implements io.ReaderAt.
func (g *gzipped) ReadAt(p []byte, off int64) (int, error) {
	done := 0
	take := func(b []byte, skip int64) { done += copy(p[done:], b[skip:]) }
	for done < len(p) && off+int64(done) < g.Size() {
		at := off + int64(done)
		body := at - int64(len(gzipHead))
		b := body / (storedHead + storedMax)
		in := body % (storedHead + storedMax)
		switch {
		case body < 0:
			take([]byte(gzipHead), at)
		case at >= g.Size()-8:
			take(g.tail(), at-(g.Size()-8))
		case in < storedHead:
			take(g.blockHead(b), in)
		default:
			in -= storedHead
			n := min(g.blockSize(b)-in, int64(len(p)-done))
			if _, err := g.inner.ReadAt(p[done:done+int(n)], b*storedMax+in); err != nil && !errors.Is(err, io.EOF) {
				return done, err
			}
			done += int(n)
		}
	}
	if done < len(p) {
		return done, io.EOF
	}
	return done, nil
}
