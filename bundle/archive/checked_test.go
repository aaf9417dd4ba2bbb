package archive

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"
)

// TestChecked writes content that its giver vouches for: it is not hashed again,
// so that only a reader finds it wrong, but its size has to be right.
func TestChecked(t *testing.T) {
	stored, packed := bytes.Repeat([]byte("stored"), 1000), bytes.Repeat([]byte("packed"), 1000)
	s := newSample(nil, nil)
	s.add(stored, false)
	s.add(packed, true)
	wrong := func(b []byte) io.ReadCloser {
		return io.NopCloser(bytes.NewReader(append(bytes.Clone(b[1:]), '!')))
	}
	for _, c := range []struct {
		name   string
		wrap   func(io.ReadCloser) io.ReadCloser
		cut    int64
		writes Code // what the writer says of the stored blob
	}{
		{"vouched for", func(r io.ReadCloser) io.ReadCloser { return Checked{r} }, 0, ""},
		{"vouched for, but short", func(r io.ReadCloser) io.ReadCloser { return Checked{io.NopCloser(io.LimitReader(r, 10))} }, 10, ErrSize},
		{"not vouched for", func(r io.ReadCloser) io.ReadCloser { return r }, 0, ErrDigest},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.tar.zst")
			w, err := Create(path, s.layout(t), WriteOptions{})
			if err != nil {
				t.Fatal(err)
			}
			err = w.WriteStored(t.Context(), digestOf(stored), c.wrap(wrong(stored)))
			if c.writes != "" {
				if !errors.Is(err, c.writes) {
					t.Errorf("%v, want %s", err, c.writes)
				}
				if err := w.Abort(); err != nil {
					t.Error(err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			open := func(_ context.Context, d string) (io.ReadCloser, error) { return c.wrap(wrong(s.content[d])), nil }
			if err := w.Close(t.Context(), open); err != nil {
				t.Fatal(err)
			}
			r, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			err = r.Verify(t.Context(), 1, nil)
			for _, b := range [][]byte{stored, packed} {
				if err == nil || !bytes.Contains([]byte(err.Error()), []byte(digestOf(b)[7:])) {
					t.Errorf("reading finds %v, and not %s", err, digestOf(b))
				}
			}
		})
	}
}
