package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/mensylisir/kubexm/testdata/fair"
)

// sample is an archive's content as the tests make it.
type sample struct {
	oci, index []byte
	head       [][]byte
	blobs      []Blob
	content    map[string][]byte
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return digestPrefix + hex.EncodeToString(sum[:])
}

// noise does not compress, text does.
func noise(n int, seed uint64) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 1})
	_, _ = r.Read(b)
	return b
}

func text(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 2))
	b := make([]byte, 0, n+16)
	for len(b) < n {
		b = append(b, "node-pods-etcd-apiserver-10.0.\n"[r.IntN(5)*5:][:5+r.IntN(5)]...)
		b = append(b, '0'+byte(r.IntN(10)))
	}
	return b[:n]
}

// newSample has one stored blob of noise for each size in stored and one
// compressed blob of text for each in compressed.
func newSample(stored, compressed []int) *sample {
	s := &sample{
		oci:     []byte(`{"imageLayoutVersion":"1.0.0"}`),
		index:   []byte(`{"schemaVersion":2,"manifests":[]}`),
		head:    [][]byte{[]byte(`{"root":true}`), text(700, 7)},
		content: make(map[string][]byte),
	}
	for i, n := range stored {
		s.add(noise(n, uint64(i)), false)
	}
	for i, n := range compressed {
		s.add(text(n, uint64(i)), true)
	}
	return s
}

func (s *sample) add(b []byte, compress bool) {
	d := digestOf(b)
	s.content[d] = b
	s.blobs = append(s.blobs, Blob{Digest: d, Size: int64(len(b)), Compress: compress})
}

func (s *sample) layout(t testing.TB) *Layout {
	t.Helper()
	l, err := NewLayout(s.oci, s.index, s.head, s.blobs)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (s *sample) open(_ context.Context, d string) (io.ReadCloser, error) {
	b, ok := s.content[d]
	if !ok {
		return nil, fmt.Errorf("no content for %s", d)
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// write makes the archive at path; the blobs arrive in the order of perm.
func (s *sample) write(t testing.TB, path string, workers int, perm []int) {
	t.Helper()
	w, err := Create(path, s.layout(t), WriteOptions{Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range perm {
		if b := s.blobs[i]; !b.Compress {
			if err := w.WriteStored(t.Context(), b.Digest, bytes.NewReader(s.content[b.Digest])); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(t.Context(), s.open); err != nil {
		t.Fatal(err)
	}
}

// file makes the archive in a directory of its own and gives its path.
func (s *sample) file(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.tar.zst")
	s.write(t, path, 2, fair.Rand(t).Perm(len(s.blobs)))
	return path
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustOpen(t testing.TB, path string) *Reader {
	t.Helper()
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// check opens and verifies the file at path.
func check(t testing.TB, path string) error {
	t.Helper()
	r, err := Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	return r.Verify(t.Context(), 2, nil)
}

// names lists a directory.
func names(t testing.TB, dir string) []string {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range es {
		out = append(out, e.Name())
	}
	return out
}

// edges are the sizes at which framing changes.
var edges = []int{0, 1, 511, 512, 513, blockSize - 1, blockSize, blockSize + 1, pieceSize - 1, pieceSize, pieceSize + 1, 3*pieceSize + 77}
