package registry

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/manifest"
)

// touchy is a blob's reader that minds being read once it was closed, as one does
// whose buffers are already in use elsewhere.
type touchy struct {
	closed, late *atomic.Bool
	left         int
}

func (r *touchy) Read(p []byte) (int, error) {
	time.Sleep(time.Millisecond)
	if r.closed.Load() {
		r.late.Store(true)
	}
	if r.left--; r.left < 0 {
		return 0, io.EOF
	}
	return copy(p, make([]byte, 4<<10)), nil
}

func (r *touchy) Close() error { r.closed.Store(true); return nil }

// slowSource gives its layers slowly.
type slowSource struct {
	*memorySource
	late atomic.Bool
}

func (s *slowSource) Blob(d string) (io.ReadCloser, int64, error) {
	rc, n, err := s.memorySource.Blob(d)
	if n > 100<<10 {
		return &touchy{closed: &atomic.Bool{}, late: &s.late, left: int(n >> 12)}, n, err
	}
	return rc, n, err
}

// A registry may refuse an upload before it was read. The client goes on reading the
// body for a moment then, and the blob must not be given back under it.
func TestRefusedUploadsAreNotReadFurther(t *testing.T) {
	src := &slowSource{memorySource: &memorySource{blobs: map[string][]byte{}, trees: map[string][]v1.Descriptor{}}}
	im := src.image("quay.io/a/b:1", make([]byte, 400<<10))
	site := newSite(t)
	inner := site.Config.Handler
	site.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && r.ContentLength > 100<<10 {
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusForbidden)
			return
		}
		inner.ServeHTTP(w, r)
	})
	for range 20 {
		if err := seedOne(t, site, src, im); err == nil {
			t.Fatal("nothing was refused: this test tries nothing")
		}
	}
	time.Sleep(50 * time.Millisecond)
	if src.late.Load() {
		t.Error("a blob was read after it was closed")
	}
}

func seedOne(t *testing.T, s *site, src Source, im manifest.ImagePin) error {
	_, err := send(t.Context(), s.target(), src, []manifest.ImagePin{im}, Options{})
	return err
}
