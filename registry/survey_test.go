package registry

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/manifest"
)

// strict is a registry that, as real ones do, knows a blob only in the
// repositories that it was sent to.
type strict struct {
	mu      sync.Mutex
	content map[string][]byte // repository and digest or tag → bytes
	types   map[string]string
	tags    map[string][]string
	mounts  int
	noList  bool
}

func newStrict(t *testing.T) (*strict, Target) {
	t.Helper()
	s := &strict{content: map[string][]byte{}, types: map[string]string{}, tags: map[string][]string{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, Target{Mapper: Mapper{Host: strings.TrimPrefix(server.URL, "http://")}, PlainHTTP: true}
}

func (s *strict) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/v2/")
	name, id, manifests := strings.Cut(path, "/manifests/")
	blobs := false
	if !manifests {
		name, id, blobs = strings.Cut(path, "/blobs/")
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	switch {
	case path == "_catalog" && s.noList:
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED"}]}`, http.StatusUnauthorized)
	case path == "_catalog":
		_, _ = w.Write(mustJSON(map[string]any{"repositories": slices.Sorted(maps.Keys(s.tags))}))
	case strings.HasSuffix(path, "/tags/list"):
		name = strings.TrimSuffix(path, "/tags/list")
		_, _ = w.Write(mustJSON(map[string]any{"name": name, "tags": s.tags[name]}))
	case manifests && r.Method == http.MethodPut:
		s.put(name, id, r.Header.Get("Content-Type"), body)
		w.WriteHeader(http.StatusCreated)
	case blobs && r.Method == http.MethodPost && r.URL.Query().Get("mount") != "":
		d := r.URL.Query().Get("mount")
		b, ok := s.content[r.URL.Query().Get("from")+" "+d]
		if !ok {
			w.Header().Set("Location", "/v2/"+name+"/blobs/uploads/1")
			w.WriteHeader(http.StatusAccepted)
			return
		}
		s.mounts++
		s.content[name+" "+d] = b
		w.Header().Set("Location", "/v2/"+name+"/blobs/"+d)
		w.WriteHeader(http.StatusCreated)
	case blobs && r.Method == http.MethodPost:
		w.Header().Set("Location", "/v2/"+name+"/blobs/uploads/1")
		w.WriteHeader(http.StatusAccepted)
	case blobs && r.Method == http.MethodPut:
		s.content[name+" "+r.URL.Query().Get("digest")] = body
		w.WriteHeader(http.StatusCreated)
	default:
		b, ok := s.content[name+" "+id]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Docker-Content-Digest", digest.FromBytes(b).String())
		if manifests {
			w.Header().Set("Content-Type", s.types[digest.FromBytes(b).String()])
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
	}
}

func (s *strict) put(name, id, media string, b []byte) {
	d := digest.FromBytes(b).String()
	s.content[name+" "+id], s.content[name+" "+d], s.types[d] = b, b, media
	if !strings.HasPrefix(id, "sha256:") {
		s.tags[name] = append(s.tags[name], id)
	}
}

func (s *strict) drop(d string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.content {
		if strings.HasSuffix(k, " "+d) {
			delete(s.content, k)
		}
	}
}

func seeded(t *testing.T) (*strict, Target, *memorySource, []manifest.ImagePin) {
	t.Helper()
	s, target := newStrict(t)
	src := &memorySource{blobs: map[string][]byte{}, trees: map[string][]v1.Descriptor{}}
	images := []manifest.ImagePin{
		src.image("registry.k8s.io/pause:3.10", []byte("base"), v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: digest.FromString("s390x"), Size: 5}),
		src.image("docker.io/library/busybox:1", []byte("base")),
	}
	if _, err := send(t.Context(), target, src, images, Options{}); err != nil {
		t.Fatal(err)
	}
	return s, target, src, images
}

func TestSurvey(t *testing.T) {
	s, target, src, images := seeded(t)
	got, err := Survey(t.Context(), target, images[:1], 2) // of the other the catalog tells
	if err != nil {
		t.Fatal(err)
	}
	want := []manifest.InventoryImage{
		{Reference: target.Host + "/docker.io/library/busybox:1", Digest: images[1].Digest},
		{Reference: "registry.k8s.io/pause:3.10", Digest: images[0].Digest},
	}
	if d := cmp.Diff(want, got.Images); d != "" {
		t.Error(d)
	}
	base, own := src.trees["registry.k8s.io/pause:3.10"][1].Digest.String(), src.trees["docker.io/library/busybox:1"][2].Digest.String()
	if len(got.Layers) != 3 || got.Layers[base] == "" || got.Layers[own] != "docker.io/library/busybox" {
		t.Errorf("layers %v", got.Layers)
	}
	for d := range got.Layers {
		if _, ok := src.blobs[d]; !ok {
			t.Errorf("%s was never sent", d)
		}
	}

	// What its manifest names and the registry has lost is not there.
	s.drop(own)
	s.noList = true
	unknown := manifest.ImagePin{Reference: "quay.io/no/such:1", Digest: images[0].Digest}
	got, err = Survey(t.Context(), target, append(images, unknown), 2)
	if err != nil {
		t.Fatal(err)
	}
	if got.Layers[own] != "" || len(got.Layers) != 2 || len(got.Images) != 2 {
		t.Errorf("after a loss: %v, %v", got.Layers, got.Images)
	}
}

func TestFindAndMount(t *testing.T) {
	s, target, src, images := seeded(t)
	base, pauses := src.trees[images[0].Reference][1].Digest.String(), src.trees[images[0].Reference][2].Digest.String()
	for name, c := range map[string]struct {
		wanted map[string][]string
		others []string
		noList bool
		want   map[string]string
	}{
		"in its own":     {map[string][]string{base: {"docker.io/library/busybox:2"}}, nil, true, map[string]string{base: "docker.io/library/busybox"}},
		"in another":     {map[string][]string{pauses: {"docker.io/library/busybox:2"}}, []string{images[0].Reference}, true, map[string]string{pauses: "registry.k8s.io/pause"}},
		"in the catalog": {map[string][]string{pauses: {"quay.io/new/one:2"}}, nil, false, map[string]string{pauses: "registry.k8s.io/pause"}},
		"nowhere":        {map[string][]string{pauses: {"quay.io/new/one:2"}}, nil, true, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			s.noList = c.noList
			got, err := Find(t.Context(), target, c.wanted, c.others, 2)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
	rc, err := Open(t.Context(), target, "registry.k8s.io/pause", base)
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	if b, err := io.ReadAll(rc); err != nil || string(b) != "base" {
		t.Errorf("%q, %v", b, err)
	}

	// What the source has from the registry is mounted, and not read.
	next := src.image("quay.io/new/one:2", []byte("base"))
	away := &homed{memorySource: src, away: map[string]string{base: "registry.k8s.io/pause"}}
	before := s.mounts
	if _, err := send(t.Context(), target, away, []manifest.ImagePin{next}, Options{}); err != nil {
		t.Fatal(err)
	}
	if s.mounts != before+1 || len(away.read) != 0 {
		t.Errorf("%d mounted; read %v", s.mounts-before, away.read)
	}
	if n := missing(t, target, src, []manifest.ImagePin{next}); n != 0 {
		t.Errorf("%d missing", n)
	}
}

// homed is a source some of whose blobs lie in the registry.
type homed struct {
	*memorySource
	away map[string]string
	mu   sync.Mutex
	read []string
}

func (h *homed) MountRepository(d string) string { return h.away[d] }

func (h *homed) Blob(d string) (io.ReadCloser, int64, error) {
	if h.away[d] != "" {
		h.mu.Lock()
		h.read = append(h.read, d)
		h.mu.Unlock()
	}
	return h.memorySource.Blob(d)
}
