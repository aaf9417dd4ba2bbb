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
