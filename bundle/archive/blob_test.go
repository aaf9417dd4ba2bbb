package archive

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
)

// What feeds a command or a request from a blob may still read it when the
// connection broke and the blob was closed.
func TestBlobsAreClosedWhileTheyAreRead(t *testing.T) {
	s := newSample([]int{3 << 20}, []int{3 << 20})
	r := mustOpen(t, s.file(t))
	for range 20 {
		for digest := range s.content {
			b, _, err := r.Blob(digest)
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			begun := make(chan struct{})
			wg.Go(func() {
				p := make([]byte, 32<<10)
				_, err := b.Read(p)
				close(begun)
				for err == nil {
					_, err = b.Read(p)
				}
				if !errors.Is(err, os.ErrClosed) && err != io.EOF {
					t.Errorf("closed under way: %v", err)
				}
			})
			<-begun
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			wg.Wait()
		}
	}
}

// A caller that checks the digest itself does not wait for a second check; a stored blob's
// frames are checked nevertheless.
func TestUncheckedBlobs(t *testing.T) {
	s := newSample([]int{3 << 20}, nil) // stored as it is
	path := s.file(t)
	b := read(t, path)
	m := mustOpen(t, path).Members()
	last := m[len(m)-1]
	b[last.Offset+headLen+20] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	rc, size, err := mustOpen(t, path).Blob(last.Digest)
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	uncheck(t, rc)
	if n, err := io.Copy(io.Discard, rc); err != nil || n != size {
		t.Errorf("%d of %d bytes, %v", n, size, err)
	}
	b[last.Offset+headLen] ^= 1 // in the header of the first block
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if rc, _, err = mustOpen(t, path).Blob(last.Digest); err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	uncheck(t, rc)
	if _, err := io.Copy(io.Discard, rc); !errors.Is(err, ErrFrame) {
		t.Errorf("a broken frame gave %v", err)
	}
}

func uncheck(t *testing.T, rc io.ReadCloser) {
	t.Helper()
	b, ok := rc.(*blob)
	if !ok {
		t.Fatalf("a blob of type %T", rc)
	}
	b.Uncheck()
}

// TestBlobAt begins in the midst of stored blobs, and at the beginning of compressed
// ones; what comes is the rest of the content either way.
func TestBlobAt(t *testing.T) {
	s := newSample(edges, []int{5, chunkSize, 2*chunkSize + 5})
	r := mustOpen(t, s.file(t))
	began := 0
	for d, want := range s.content {
		size := int64(len(want))
		for _, off := range []int64{0, 1, blockSize - 1, blockSize, blockSize + 1, pieceSize, pieceSize + blockSize, size / 2, size - 1, size} {
			if off < 0 || off > size {
				continue
			}
			rc, at, err := r.BlobAt(d, off)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(rc)
			if err != nil || at > off || !bytes.Equal(got, want[at:]) {
				t.Errorf("%s of %d bytes, from %d: %d bytes from %d, %v", d, size, off, len(got), at, err)
			}
			if at > 0 {
				began++
			}
			if err := rc.Close(); err != nil {
				t.Error(err)
			}
		}
		for _, off := range []int64{-1, size + 1} {
			if _, _, err := r.BlobAt(d, off); err == nil {
				t.Errorf("%s of %d bytes from %d", d, size, off)
			}
		}
	}
	if began == 0 {
		t.Error("none began in its midst")
	}
	if _, _, err := r.BlobAt("sha256:"+strings.Repeat("0", 64), 0); err == nil {
		t.Error("a blob that is not there")
	}
}
