package archive

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// benchSample is 256 MiB of stored blobs in several sizes and, if asked,
// 64 MiB that compress.
func benchSample(compress bool) (s *sample, bytes int64) {
	stored := []int{}
	for range 4 {
		stored = append(stored, 32<<20, 16<<20, 8<<20, 4<<20, 2<<20, 1<<20, 1<<20-7)
	}
	var compressed []int
	if compress {
		compressed = []int{30 << 20, 20 << 20, 14 << 20}
	}
	s = newSample(stored, compressed)
	for _, b := range s.blobs {
		bytes += b.Size
	}
	return s, bytes
}

func BenchmarkWriteStored(b *testing.B) {
	s, n := benchSample(false)
	path := filepath.Join(b.TempDir(), "x")
	b.SetBytes(n)
	for b.Loop() {
		w, err := Create(path, s.layout(b), WriteOptions{})
		if err != nil {
			b.Fatal(err)
		}
		parallel(s, func(x Blob) error {
			return w.WriteStored(b.Context(), x.Digest, bytes.NewReader(s.content[x.Digest]))
		})
		if err := w.Close(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWriteCompressed(b *testing.B) {
	s := newSample(nil, []int{30 << 20, 20 << 20, 14 << 20})
	path := filepath.Join(b.TempDir(), "x")
	b.SetBytes(64 << 20)
	for b.Loop() {
		s.write(b, path, 2, nil)
	}
}

// BenchmarkVerify runs in pairs with a plain sha256 of the same content from
// files, two workers each, and reports the median ratio of their times: a
// machine that others use says nothing by its absolute figures.
func BenchmarkVerify(b *testing.B) {
	b.Run("stored", func(b *testing.B) { benchmarkVerify(b, false) })
	b.Run("mixed", func(b *testing.B) { benchmarkVerify(b, true) })
}

func benchmarkVerify(b *testing.B, compress bool) {
	s, n := benchSample(compress)
	r := mustOpen(b, s.file(b))
	dir := b.TempDir()
	for _, x := range s.blobs {
		if err := os.WriteFile(filepath.Join(dir, x.Digest), s.content[x.Digest], 0o600); err != nil {
			b.Fatal(err)
		}
	}
	slices.SortFunc(s.blobs, func(x, y Blob) int { return cmp.Compare(y.Size, x.Size) })
	plain := func(x Blob) error {
		f, err := os.Open(filepath.Join(dir, x.Digest))
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.CopyBuffer(struct{ io.Writer }{sha256.New()}, struct{ io.Reader }{f}, make([]byte, 1<<20))
		return err
	}
	var ratios []float64
	b.SetBytes(2 * n)
	for b.Loop() {
		t0 := time.Now()
		if err := r.Verify(b.Context(), 2, nil); err != nil {
			b.Fatal(err)
		}
		t1 := time.Now()
		parallel(s, plain)
		ratios = append(ratios, t1.Sub(t0).Seconds()/time.Since(t1).Seconds())
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "verify/sha256")
}

// parallel gives the blobs of s to two workers.
func parallel(s *sample, do func(Blob) error) {
	work := make(chan Blob, len(s.blobs))
	for _, b := range s.blobs {
		work <- b
	}
	close(work)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for b := range work {
				if err := do(b); err != nil {
					panic(err)
				}
			}
		})
	}
	wg.Wait()
}
