package archive

import (
	"errors"
	"io"
	"os"
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

// Whoever checks the bytes himself is not made to wait for a second check; a stored
// blob's frames are held to be whole all the same.
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
