package fetch

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/manifest"
)

// testRegistry serves documents and blobs as they are, also such as no registry
// would take.
type testRegistry struct {
	mu        sync.Mutex
	documents map[string]testDocument // by "repository:tag" and "repository@digest"
	blobs     map[string][]byte       // by digest; every repository has them all
	before    func(http.ResponseWriter, *http.Request) (answered bool)
}

type testDocument struct {
	bytes     []byte
	mediaType string
}

func newRegistry() *testRegistry {
	return &testRegistry{documents: map[string]testDocument{}, blobs: map[string][]byte{}}
}

func (g *testRegistry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.before != nil && g.before(w, r) {
		return
	}
	if r.URL.Path == "/v2/" {
		return
	}
	path := strings.TrimPrefix(r.URL.Path, "/v2/")
	g.mu.Lock()
	defer g.mu.Unlock()
	if repo, d, ok := strings.Cut(path, "/blobs/"); ok && repo != "" {
		b, ok := g.blobs[d]
		if !ok {
			refuse(w, http.StatusNotFound, "BLOB_UNKNOWN", "blob unknown to registry")
			return
		}
		http.ServeContent(w, r, "blob", time.Time{}, bytes.NewReader(b))
		return
	}
	repo, id, ok := strings.Cut(path, "/manifests/")
	separator := ":"
	if strings.Contains(id, ":") {
		separator = "@"
	}
	d, found := g.documents[repo+separator+id]
	if !ok || !found {
		refuse(w, http.StatusNotFound, "MANIFEST_UNKNOWN", "manifest unknown")
		return
	}
	w.Header().Set("Content-Type", d.mediaType)
	_, _ = w.Write(d.bytes)
}

func refuse(w http.ResponseWriter, code int, word, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]any{"code": word, "message": message}}})
}

// blob stores b.
func (g *testRegistry) blob(mediaType string, b []byte) ocispec.Descriptor {
	d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(b), Size: int64(len(b))}
	g.blobs[d.Digest.String()] = b
	return d
}

// put stores a document under its digest, and under a tag if there is one.
func (g *testRegistry) put(repo, tag string, b []byte, mediaType string) ocispec.Descriptor {
	d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(b), Size: int64(len(b))}
	g.documents[repo+"@"+d.Digest.String()] = testDocument{b, mediaType}
	if tag != "" {
		g.documents[repo+":"+tag] = testDocument{b, mediaType}
	}
	return d
}

// image stores an image for a platform, written "linux/arm64/v8".
func (g *testRegistry) image(t *testing.T, repo, tag, platform string, layers ...[]byte) ocispec.Descriptor {
	t.Helper()
	p := platformFrom(platform)
	config := g.blob(ocispec.MediaTypeImageConfig, indented(t, ocispec.Image{Platform: *p}))
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: config}
	m.SchemaVersion = 2
	for _, l := range layers {
		m.Layers = append(m.Layers, g.blob(ocispec.MediaTypeImageLayerGzip, l))
	}
	d := g.put(repo, tag, indented(t, m), ocispec.MediaTypeImageManifest)
	d.Platform = p
	return d
}

// index stores an index.
func (g *testRegistry) index(t *testing.T, repo, tag string, children ...ocispec.Descriptor) ocispec.Descriptor {
	t.Helper()
	x := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: children}
	x.SchemaVersion = 2
	return g.put(repo, tag, indented(t, x), ocispec.MediaTypeImageIndex)
}

func platformFrom(s string) *ocispec.Platform {
	part := append(strings.Split(s, "/"), "")
	return &ocispec.Platform{OS: part[0], Architecture: part[1], Variant: part[2]}
}

// indented writes JSON as no code here would: who marshals it anew changes it.
func indented(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.MarshalIndent(v, " ", "   ")
	if err != nil {
		t.Fatal(err)
	}
	return append(b, "\n\n"...)
}

func pin(reference string) manifest.ImagePin {
	return manifest.ImagePin{ID: "image/" + reference, Names: []string{"it"}, Reference: reference, Sets: []string{"v1"}}
}

var (
	amd64 = manifest.Platform{OS: "linux", Arch: "amd64"}
	arm64 = manifest.Platform{OS: "linux", Arch: "arm64"}
)

// withToken makes the registry require a token for each repository, which it issues for the
// password. Each token is valid for some requests.
func (g *testRegistry) withToken(user, password string, uses int) {
	var mu sync.Mutex
	left := map[string]int{}
	g.before = func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path == "/token" {
			u, p, _ := r.BasicAuth()
			if u != user || p != password {
				refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", "incorrect username or password")
				return true
			}
			token := base64.RawURLEncoding.EncodeToString([]byte(r.URL.Query().Get("scope") + time.Now().String()))
			left[token] = uses
			_ = json.NewEncoder(w).Encode(map[string]any{"token": token})
			return true
		}
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		scope, _ := base64.RawURLEncoding.DecodeString(token)
		repo, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/"), "/manifests/")
		repo, _, _ = strings.Cut(repo, "/blobs/")
		if repo != "" && left[token] > 0 && strings.HasPrefix(string(scope), "repository:"+repo+":pull") {
			left[token]--
			return false
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+r.Host+`/token",service="test",scope="repository:`+repo+`:pull"`)
		refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", "authentication required")
		return true
	}
}

// withPassword has the registry want a password with every request.
func (g *testRegistry) withPassword(user, password string) {
	g.before = func(w http.ResponseWriter, r *http.Request) bool {
		if u, p, _ := r.BasicAuth(); u == user && p == password {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", "authentication required")
		return true
	}
}
