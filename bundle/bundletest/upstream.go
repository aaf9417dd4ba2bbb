// Package bundletest provides an upstream in memory, and a lock that pins its content, for
// tests of bundles and of their users.
package bundletest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/manifest"
)

// Linux is the platform of an Upstream's content; Noon is the creation time of its lock.
var (
	Linux = manifest.Platform{OS: "linux", Arch: "amd64"}
	Noon  = time.Date(2026, 5, 6, 12, 0, 0, 123, time.UTC)
)

// Unpinned returns a resolved lock without pins.
func Unpinned() *manifest.Lock {
	return &manifest.Lock{
		APIVersion: manifest.APIVersion, Kind: manifest.LockKind, Cluster: "demo", Config: "sha256:" + strings.Repeat("a", 64),
		Platforms: []manifest.Platform{Linux},
		Sets:      []manifest.Set{{Name: "v1.32.2"}},
		Artifacts: []manifest.Artifact{
			{ID: "binary/kubelet", Kind: manifest.Binary, Name: "kubelet", Platform: Linux, Sets: []string{"v1.32.2"},
				Address: "https://example.com/kubelet", SHA256: strings.Repeat("a", 64), Trust: manifest.FromCatalog},
			{ID: "binary/runc", Kind: manifest.Binary, Name: "runc", Platform: Linux, Sets: []string{"v1.32.2"},
				Address: "https://example.com/runc", DigestAddress: "https://example.com/runc.sha256"},
		},
		Images: []manifest.ImagePin{
			{ID: "image/pause", Names: []string{"pause"}, Reference: "registry.k8s.io/pause:3.10", Sets: []string{"v1.32.2"}},
		},
	}
}

// Upstream is an upstream in memory with a lock that pins it: two files, one archive of files,
// and one image with one selected platform.
type Upstream struct {
	Lock   *manifest.Lock
	Config []byte
	Blobs  map[string][]byte // hex → bytes
	Image  []fetch.Content
	Cache  *fetch.Cache

	mu      sync.Mutex
	Fetched []string // digests, in hex, of what was not in the cache
}

// New returns an Upstream; its cache is a folder of the test.
func New(t *testing.T) *Upstream {
	t.Helper()
	w := &Upstream{Blobs: map[string][]byte{}, Config: []byte("kind: Cluster\n")}
	rnd := rand.NewChaCha8([32]byte{1, 2})
	random := func(n int) []byte { // compressible
		b := make([]byte, n)
		_, _ = rnd.Read(b) // never fails
		for i := range b {
			b[i] %= 17
		}
		return b
	}
	layer := v1.Descriptor{MediaType: v1.MediaTypeImageLayerGzip, Digest: digest.Digest("sha256:" + w.Put(random(300<<10))), Size: 300 << 10}
	config := w.JSON(t, v1.MediaTypeImageConfig, map[string]any{"architecture": "amd64", "os": "linux"})
	image := w.JSON(t, v1.MediaTypeImageManifest, v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest, Config: config, Layers: []v1.Descriptor{layer}})
	absent := v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: digest.FromString("s390x"), Size: 5}
	index := w.JSON(t, v1.MediaTypeImageIndex, v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{absent, image}})
	roles := []fetch.Role{fetch.IndexRole, fetch.ManifestRole, fetch.ConfigRole, fetch.LayerRole}
	for i, d := range []v1.Descriptor{index, image, config, layer} {
		w.Image = append(w.Image, fetch.Content{Digest: d.Digest.String(), Size: d.Size, MediaType: d.MediaType, Role: roles[i]})
	}
	l := Unpinned()
	l.Config = digest.FromBytes(w.Config).String()
	l.Created, l.Serial = Noon, 20260506120000
	l.Artifacts[0].SHA256, l.Artifacts[0].Size, l.Artifacts[0].Trust = w.Put(random(1<<20)), 1<<20, manifest.FromCatalog
	l.Artifacts[1].SHA256, l.Artifacts[1].Size, l.Artifacts[1].Archive = strings.Repeat("a", 64), 99, "tar.gz"
	l.Artifacts[1].Members = []manifest.Member{
		{Path: "bin/a", Name: "a", SHA256: w.Put(random(5 << 20)), Size: 5 << 20},
		{Path: "bin/b", Name: "b", SHA256: w.Put(nil), Size: 0},
	}
	l.Images[0].Digest, l.Images[0].Size, l.Images[0].MediaType = index.Digest.String(), index.Size, index.MediaType
	l.Images[0].Platforms = []manifest.PlatformImage{{Platform: Linux, MediaType: image.MediaType, Digest: image.Digest.String(), Size: image.Size, Content: config.Size + layer.Size}}
	w.Lock = l
	w.Cache = OpenCache(t)
	return w
}

// OpenCache opens an empty cache in a folder of the test.
func OpenCache(t *testing.T) *fetch.Cache {
	t.Helper()
	c, err := fetch.OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Put adds a blob to upstream and returns its digest in hex.
func (w *Upstream) Put(b []byte) string {
	h := sha256.Sum256(b)
	name := hex.EncodeToString(h[:])
	w.Blobs[name] = b
	return name
}

// JSON adds a document to upstream and returns its descriptor.
func (w *Upstream) JSON(t *testing.T, mediaType string, v any) v1.Descriptor {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return v1.Descriptor{MediaType: mediaType, Digest: digest.Digest("sha256:" + w.Put(b)), Size: int64(len(b))}
}

func (w *Upstream) fetch(ctx context.Context, name string, size int64) error {
	if w.Cache.Has(name, size) {
		return nil
	}
	w.mu.Lock()
	w.Fetched = append(w.Fetched, name)
	w.mu.Unlock()
	return w.Cache.Put(ctx, name, size, bytes.NewReader(w.Blobs[name]))
}

// FetchArtifact implements bundle.Fetcher.
func (w *Upstream) FetchArtifact(ctx context.Context, a manifest.Artifact) error {
	for _, b := range a.Blobs() {
		if err := w.fetch(ctx, b.SHA256, b.Size); err != nil {
			return err
		}
	}
	return nil
}

// FetchMember implements bundle.Fetcher.
func (w *Upstream) FetchMember(ctx context.Context, _ manifest.Artifact, m manifest.Member) error {
	return w.fetch(ctx, m.SHA256, m.Size)
}

// ImageContent implements bundle.Fetcher.
func (w *Upstream) ImageContent(_ context.Context, _ manifest.ImagePin) ([]fetch.Content, error) {
	return w.Image, nil
}

// FetchContent implements bundle.Fetcher.
func (w *Upstream) FetchContent(ctx context.Context, _ manifest.ImagePin, c fetch.Content) error {
	return w.fetch(ctx, digest.Digest(c.Digest).Encoded(), c.Size)
}

// StreamArtifact implements bundle.Fetcher.
func (w *Upstream) StreamArtifact(a manifest.Artifact) fetch.Stream {
	if a.Archive != "" {
		return nil
	}
	return w.stream(a.SHA256)
}

// UnpackArtifact implements bundle.Fetcher.
func (w *Upstream) UnpackArtifact(a manifest.Artifact) fetch.Unpack {
	if a.Archive == "" {
		return nil
	}
	return func(ctx context.Context, open fetch.OpenFile) error {
		for _, m := range a.Members {
			f, err := open(ctx, m.SHA256)
			if err != nil {
				return err
			}
			if f == nil {
				continue
			}
			if err := errors.Join(f.Reset(), w.stream(m.SHA256)(ctx, f), f.Commit(), f.Close()); err != nil {
				return err
			}
		}
		return nil
	}
}

// StreamMember implements bundle.Fetcher.
func (w *Upstream) StreamMember(_ manifest.Artifact, m manifest.Member) fetch.Stream {
	return w.stream(m.SHA256)
}

// StreamContent implements bundle.Fetcher.
func (w *Upstream) StreamContent(_ manifest.ImagePin, c fetch.Content) fetch.Stream {
	if c.Role != fetch.LayerRole {
		return nil
	}
	return w.stream(digest.Digest(c.Digest).Encoded())
}

func (w *Upstream) stream(name string) fetch.Stream {
	return func(_ context.Context, to fetch.Sink) error {
		b, ok := w.Blobs[name]
		if !ok {
			return fmt.Errorf("upstream has no %s", name)
		}
		_, err := to.ReadFrom(bytes.NewReader(b[to.Have():]))
		w.mu.Lock()
		defer w.mu.Unlock()
		w.Fetched = append(w.Fetched, name)
		return err
	}
}

// HasFetched reports whether a blob was read from upstream.
func (w *Upstream) HasFetched(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.Fetched, name)
}

// Newer returns a later state of w: another version of kubelet, and the image with an
// additional layer.
func (w *Upstream) Newer(t *testing.T, size int) *Upstream {
	t.Helper()
	n := &Upstream{Blobs: w.Blobs, Config: w.Config, Cache: OpenCache(t)}
	random := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(random) // never fails
	old := w.Image[3]
	layer := v1.Descriptor{MediaType: v1.MediaTypeImageLayerGzip, Digest: digest.Digest("sha256:" + n.Put(random)), Size: int64(size)}
	config := n.JSON(t, v1.MediaTypeImageConfig, map[string]any{"architecture": "amd64", "os": "linux", "layers": 2})
	image := n.JSON(t, v1.MediaTypeImageManifest, v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest, Config: config,
		Layers: []v1.Descriptor{{MediaType: old.MediaType, Digest: digest.Digest(old.Digest), Size: old.Size}, layer}})
	index := n.JSON(t, v1.MediaTypeImageIndex, v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{image}})
	for i, d := range []v1.Descriptor{index, image, config, layer} {
		n.Image = append(n.Image, fetch.Content{Digest: d.Digest.String(), Size: d.Size, MediaType: d.MediaType, Role: w.Image[i].Role})
	}
	n.Image = append(n.Image, old)
	l := w.Lock.Clone()
	l.Serial++
	l.Artifacts[0].SHA256, l.Artifacts[0].Size = n.Put(random[:size/2]), int64(size/2)
	l.Images[0].Digest, l.Images[0].Size = index.Digest.String(), index.Size
	l.Images[0].Platforms[0] = manifest.PlatformImage{Platform: Linux, MediaType: image.MediaType, Digest: image.Digest.String(), Size: image.Size, Content: config.Size + layer.Size + old.Size}
	n.Lock = l
	return n
}
