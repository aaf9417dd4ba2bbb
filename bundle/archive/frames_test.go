package archive

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestFramesAreCopied copies compressed blobs from another archive: the same bytes. Each
// damage of the frames is found.
func TestFramesAreCopied(t *testing.T) {
	s := newSample([]int{700}, []int{0, 300, 2*chunkSize + 9})
	from := s.file(t)
	want := read(t, from)
	r := mustOpen(t, from)
	path := filepath.Join(t.TempDir(), "x.tar.zst")
	w, err := Create(path, s.layout(t), WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteStored(t.Context(), s.blobs[0].Digest, bytes.NewReader(s.content[s.blobs[0].Digest])); err != nil {
		t.Fatal(err)
	}
	if f, err := r.Frames(s.blobs[0].Digest); f != nil || err != nil {
		t.Errorf("frames of a stored blob: %v, %v", f, err)
	}
	for i, b := range s.blobs[1:] {
		f, err := r.Frames(b.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			for at := int64(0); at < f.raw.Size(); at += f.raw.Size()/40 + 1 {
				if err := damaged(t, w, from, b.Digest, f.m.Offset+headLen+at); !errors.Is(err, ErrFrame) && !errors.Is(err, ErrDigest) && !errors.Is(err, ErrSize) {
					t.Errorf("byte %d of the frames changed: %v", at, err)
				}
			}
		}
		if err := w.Write(t.Context(), b.Digest, f); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := w.WriteStaged(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(t, path), want) {
		t.Error("other bytes than those of compressing")
	}
	if Compressor() == "" {
		t.Error("the compressor is not known")
	}
}

// damaged writes a blob from a copy of an archive with one byte changed.
func damaged(t *testing.T, w *Writer, from, digest string, at int64) error {
	t.Helper()
	b := read(t, from)
	b[at] ^= 1
	path := filepath.Join(t.TempDir(), "damaged.tar.zst")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := mustOpen(t, path).Frames(digest)
	if err != nil {
		return err
	}
	defer f.Close()
	return w.Write(t.Context(), digest, f)
}

// TestFramesReadAsContent: where frames are no use, they are what they decode to.
func TestFramesReadAsContent(t *testing.T) {
	s := newSample(nil, []int{5000})
	f, err := mustOpen(t, s.file(t)).Frames(s.blobs[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || !bytes.Equal(b, s.content[s.blobs[0].Digest]) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}
