package transfer

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// TestEndlessReferrers: a registry names a further page for ever, of nothing or of
// what is no signature.
func TestEndlessReferrers(t *testing.T) {
	for name, page := range map[string]string{
		"empty pages":     `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`,
		"other artifacts": fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":%q,"digest":%q,"size":2,"artifactType":"x/y"}]}`, v1.MediaTypeImageManifest, digest.FromString("{}")),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			var asked atomic.Int64
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.Contains(r.URL.Path, "/referrers/") {
					return
				}
				n := asked.Add(1)
				if n > 10*maxReferrerPages { // enough to see that nobody counts
					cancel()
				}
				w.Header().Set("Content-Type", v1.MediaTypeImageIndex)
				w.Header().Set("Link", fmt.Sprintf(`<%s?n=%d>; rel="next"`, r.URL.Path, n))
				fmt.Fprint(w, page)
			}))
			defer srv.Close()
			repo, err := Remote{Reference: strings.TrimPrefix(srv.URL, "http://") + "/x:1", PlainHTTP: true}.repository()
			if err != nil {
				t.Fatal(err)
			}
			_, err = pulledSignatures(ctx, repo, v1.Descriptor{MediaType: v1.MediaTypeImageIndex, Digest: digest.FromString("root"), Size: 4})
			if err == nil || !strings.Contains(err.Error(), "more than 64 pages") || asked.Load() > 2*maxReferrerPages {
				t.Errorf("after %d pages: %v", asked.Load(), err)
			}
		})
	}
}

// TestIdleConnections end, and those on which a byte goes either way now and then do not.
func TestIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		c := newIdleConn(ours, time.Minute)
		go func() { _, _ = io.Copy(io.Discard, io.LimitReader(theirs, 10)) }()
		reader := make(chan error, 1)
		go func() { // as http.Transport reads while it sends a body
			_, err := c.Read(make([]byte, 1))
			reader <- err
		}()
		for range 10 {
			time.Sleep(50 * time.Second)
			if _, err := c.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		_, err := c.Write([]byte("x")) // nobody takes it
		if err == nil || !strings.Contains(err.Error(), "nothing was sent or received for 1m0s") {
			t.Errorf("write: %v", err)
		}
		if err := <-reader; err == nil || !strings.Contains(err.Error(), "nothing was sent or received") {
			t.Errorf("read: %v", err)
		}
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("after %s", took)
		}
		_ = c.Close() // a second time
	})
}
