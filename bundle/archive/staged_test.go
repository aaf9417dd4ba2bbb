package archive

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/testdata/fair"
)

// TestStagedBlobsAreTheSameBytes writes all blobs at once in any order, with Blob and with
// Write: the archive has the bytes that compressing in order gives.
func TestStagedBlobsAreTheSameBytes(t *testing.T) {
	s := newSample([]int{10, 3*pieceSize + 7}, []int{100, 0, 2*chunkSize + 9, chunkSize, 3 * chunkSize, chunkSize - 1})
	s.add(noise(chunkSize+5, 3), true) // does not compress
	want := read(t, s.file(t))
	for range 4 {
		dir := t.TempDir()
		path := filepath.Join(dir, "x.tar.zst")
		w, err := Create(path, s.layout(t), WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		g, ctx := errgroup.WithContext(t.Context())
		g.Go(func() error { return w.WriteStaged(ctx) })
		for i, at := range fair.Rand(t).Perm(len(s.blobs)) {
			d := s.blobs[at].Digest
			g.Go(func() error {
				if i%2 == 0 {
					return w.Write(ctx, d, bytes.NewReader(s.content[d]))
				}
				b, err := w.Blob(ctx, d)
				if err != nil {
					return err
				}
				defer b.Close()
				for part := range slices.Chunk(s.content[d], 700_001) {
					if _, err := b.ReadFrom(bytes.NewReader(part)); err != nil {
						return err
					}
				}
				return b.Commit()
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if got := read(t, path); !bytes.Equal(got, want) {
			t.Fatalf("%d bytes, %d in order", len(got), len(want))
		}
		if left := names(t, dir); len(left) != 1 {
			t.Errorf("left behind: %v", left)
		}
	}
}
