package archive

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mensylisir/kubexm/testdata/fair"
)

// mutate changes b in one of the ways in which files go wrong.
func mutate(r *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	at := r.IntN(len(b))
	n := min(1+r.IntN(600), len(b)-at)
	switch r.IntN(6) {
	case 0: // bits
		for range 1 + r.IntN(4) {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
	case 1: // a piece overwritten
		copy(b[at:at+n], noise(n, r.Uint64()))
	case 2: // a piece lost
		b = slices.Delete(b, at, at+n)
	case 3: // a piece twice
		b = slices.Insert(b, at, b[at:at+n]...)
	case 4: // a piece moved
		to := r.IntN(len(b) - n + 1)
		piece := bytes.Clone(b[at : at+n])
		b = slices.Insert(slices.Delete(b, at, at+n), to, piece...)
	case 5: // zeros
		clear(b[at : at+n])
	}
	return b
}

// TestMutations changes an archive in a thousand ways. Whatever is accepted
// must be the archive that was written.
func TestMutations(t *testing.T) {
	rounds := 1000
	if testing.Short() {
		rounds = 100
	}
	s := newSample([]int{0, 600, 70_000}, []int{40_000, 7})
	b := read(t, s.file(t))
	want := s.tree()
	parent := t.TempDir()
	path, dir := filepath.Join(parent, "x"), filepath.Join(parent, "out")
	r := fair.Rand(t)
	for i := range rounds {
		bad := mutate(r, b)
		if bytes.Equal(bad, b) {
			continue
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		var e *Error
		if err := check(t, path); !errors.As(err, &e) {
			t.Errorf("round %d: verified: %v", i, err)
		}
		err := Extract(t.Context(), bytes.NewReader(bad), dir, ExtractOptions{Limit: 1 << 20})
		if err != nil && !errors.As(err, &e) {
			t.Errorf("round %d: an error without a code: %v", i, err)
		}
		if err == nil && !maps.Equal(files(t, dir), want) {
			t.Errorf("round %d: extracted to something else", i)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if got := names(t, parent); len(got) != 1 {
			t.Fatalf("round %d: left behind %v", i, got)
		}
	}
}
