package registry

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/transfer"
	"github.com/mensylisir/kubexm/manifest"
)

// memorySource is a Source in memory.
type memorySource struct {
	blobs map[string][]byte
	trees map[string][]v1.Descriptor
}

func (s *memorySource) put(mediaType string, b []byte) v1.Descriptor {
	d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(b), Size: int64(len(b))}
	s.blobs[d.Digest.String()] = b
	return d
}

func (s *memorySource) Blob(d string) (io.ReadCloser, int64, error) {
	b, ok := s.blobs[d]
	if !ok {
		return nil, 0, errors.New("no such blob")
	}
	return io.NopCloser(bytes.NewReader(b)), int64(len(b)), nil
}

func (s *memorySource) Tree(im manifest.ImagePin) ([]v1.Descriptor, error) {
	return s.trees[im.Reference], nil
}

// image adds an image; others are named by its index and absent, as platforms
// that a bundle does not carry are.
func (s *memorySource) image(ref string, base []byte, others ...v1.Descriptor) manifest.ImagePin {
	layer := s.put(v1.MediaTypeImageLayerGzip, base)
	own := s.put(v1.MediaTypeImageLayerGzip, []byte("layer of "+ref))
	config := s.put(v1.MediaTypeImageConfig, fmt.Appendf(nil, `{"os":"linux","architecture":"amd64","ref":%q}`, ref))
	m := s.put(v1.MediaTypeImageManifest, mustJSON(v1.Manifest{MediaType: v1.MediaTypeImageManifest, Config: config, Layers: []v1.Descriptor{layer, own}}))
	index := s.put(v1.MediaTypeImageIndex, mustJSON(v1.Index{MediaType: v1.MediaTypeImageIndex, Manifests: append([]v1.Descriptor{m}, others...)}))
	s.trees[ref] = []v1.Descriptor{config, layer, own, m, index}
	return manifest.ImagePin{ID: "image/" + ref, Reference: ref, MediaType: index.MediaType, Digest: index.Digest.String(), Size: index.Size}
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// site is a registry that counts uploads and can refuse some requests.
type site struct {
	*httptest.Server
	uploads atomic.Int32
	mu      sync.Mutex
	refuse  func(*http.Request) bool
}

func newSite(t *testing.T) *site {
	t.Helper()
	h := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		refuse := s.refuse != nil && s.refuse(r)
		s.mu.Unlock()
		if refuse {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/blobs/uploads/") {
			s.uploads.Add(1)
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) target() Target {
	return Target{Mapper: Mapper{Host: strings.TrimPrefix(s.URL, "http://")}, PlainHTTP: true}
}

func (s *site) digestOf(t *testing.T, path string) string {
	t.Helper()
	resp, err := http.Get(s.URL + "/v2/" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp.Status
	}
	h := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(h[:])
}

func newMemorySource() (*memorySource, []manifest.ImagePin) {
	s := &memorySource{blobs: map[string][]byte{}, trees: map[string][]v1.Descriptor{}}
	base := bytes.Repeat([]byte("base"), 100<<10)
	return s, []manifest.ImagePin{s.image("registry.k8s.io/pause:3.10", base), s.image("registry.k8s.io/coredns/coredns:v1.11.3", base), s.image("docker.io/library/nginx:1", base)}
}

// send compares and fills, as an installation does.
func send(ctx context.Context, t Target, src Source, images []manifest.ImagePin, o Options) (FillResult, error) {
	c, err := Compare(ctx, t, src, images, o.Parallel)
	if err != nil {
		return FillResult{}, err
	}
	done, _, err := Fill(ctx, t, src, c, o)
	return done, err
}

// missing counts the images that a registry lacks.
func missing(t *testing.T, target Target, src Source, images []manifest.ImagePin) int {
	t.Helper()
	c, err := Compare(t.Context(), target, src, images, 1)
	if err != nil {
		t.Fatal(err)
	}
	return c.Missing()
}

func TestSendThenNothingIsMissing(t *testing.T) {
	src, images := newMemorySource()
	site := newSite(t)
	if n := missing(t, site.target(), src, images); n != 3 {
		t.Fatal(n)
	}
	var sent atomic.Int64
	done, err := send(t.Context(), site.target(), src, images, Options{Parallel: 4, Sent: func(n int64) { sent.Add(n) }})
	if err != nil {
		t.Fatal(err)
	}
	if done.Images != 3 || sent.Load() == 0 {
		t.Errorf("%+v, %d bytes sent", done, sent.Load())
	}
	for _, im := range images {
		path, tag, err := site.target().Repository(im.Reference)
		if err != nil {
			t.Fatal(err)
		}
		if got := site.digestOf(t, path+"/manifests/"+tag); got != im.Digest {
			t.Errorf("%s is %s at the site, %s upstream", im.Reference, got, im.Digest)
		}
	}
	if n := missing(t, site.target(), src, images); n != 0 {
		t.Errorf("still missing: %d", n)
	}
	before := site.uploads.Load()
	if _, err := send(t.Context(), site.target(), src, images, Options{Parallel: 4}); err != nil {
		t.Fatal(err)
	}
	if n := site.uploads.Load() - before; n != 0 {
		t.Errorf("%d blobs were sent again", n)
	}
}

// No tag may be seen before its content: break the wire at each request in
// turn; afterwards every tag that answers refers to a complete image, and a second
// run completes the rest.
func TestSendInterruptedAnywhere(t *testing.T) {
	src, images := newMemorySource()
	for k := 1; ; k++ {
		site := newSite(t)
		n, broke := 0, false
		site.refuse = func(*http.Request) bool { n++; broke = broke || n >= k; return n >= k }
		_, err := send(t.Context(), site.target(), src, images, Options{Parallel: 2})
		site.mu.Lock()
		whole := !broke
		site.mu.Unlock()
		if whole {
			if err != nil {
				t.Fatal(err)
			}
			return
		}
		if err == nil {
			t.Fatalf("request %d was refused, and Fill says all is well", k)
		}
		site.mu.Lock()
		site.refuse = nil
		site.mu.Unlock()
		for _, im := range images {
			path, tag, _ := site.target().Repository(im.Reference)
			if site.digestOf(t, path+"/manifests/"+tag) != im.Digest {
				continue
			}
			for _, d := range src.trees[im.Reference] {
				kind := "/blobs/"
				if bundle.IsManifest(d.MediaType) {
					kind = "/manifests/"
				}
				if got := site.digestOf(t, path+kind+d.Digest.String()); got != d.Digest.String() {
					t.Fatalf("broken at request %d: %s is tagged, and %s of it is %s", k, im.Reference, d.Digest, got)
				}
			}
		}
		if _, err := send(t.Context(), site.target(), src, images, Options{Parallel: 2}); err != nil {
			t.Fatalf("broken at request %d, then: %v", k, err)
		}
		if n := missing(t, site.target(), src, images); n > 0 {
			t.Fatalf("broken at request %d: %d missing", k, n)
		}
		site.Close()
	}
}

func TestCompareSeesAnotherDigest(t *testing.T) {
	src, images := newMemorySource()
	site := newSite(t)
	if _, err := send(t.Context(), site.target(), src, images, Options{}); err != nil {
		t.Fatal(err)
	}
	images[1].Digest = images[0].Digest
	c, err := Compare(t.Context(), site.target(), src, images, 1)
	if err != nil || c.Missing() != 1 || c.Images[1].AlreadyPresent || c.Images[1].Previous == "" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestSparseIndexRefused(t *testing.T) {
	src, _ := newMemorySource()
	sparse := src.image("quay.io/a/b:1", []byte("x"), v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: digest.FromString("absent"), Size: 3})
	_, err := send(t.Context(), newSite(t).target(), src, []manifest.ImagePin{sparse}, Options{})
	var refused *transfer.SparseError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "validation.manifests.indexes") {
		t.Errorf("%v", err)
	}
}

func TestMapper(t *testing.T) {
	for _, c := range []struct{ namespace, ref, want string }{
		{"", "registry.k8s.io/pause:3.10", "reg.site:5000/registry.k8s.io/pause:3.10"},
		{"kube", "registry.k8s.io/coredns/coredns:v1.11.3", "reg.site:5000/kube/registry.k8s.io/coredns/coredns:v1.11.3"},
		{"", "nginx", "reg.site:5000/docker.io/library/nginx:latest"},
		{"", "localhost:5000/a/b:1", "reg.site:5000/localhost-5000/a/b:1"},
		{"", "quay.io/a/b@" + string(digest.FromString("x")), "reg.site:5000/quay.io/a/b@" + string(digest.FromString("x"))},
		{"", "quay.io/a/b:1@" + string(digest.FromString("x")), "reg.site:5000/quay.io/a/b:1@" + string(digest.FromString("x"))},
	} {
		got, err := Mapper{Host: "reg.site:5000", Namespace: c.namespace}.Map(c.ref)
		if err != nil || got != c.want {
			t.Errorf("%s: %s, %v; want %s", c.ref, got, err, c.want)
		}
	}
	if got, err := (Mapper{}).Map("a//b"); err == nil {
		t.Errorf("a bad reference became %s", got)
	}
}
