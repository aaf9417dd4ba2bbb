package registrytest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/manifest"
)

// set is the only set of a Content's lock.
const set = "v1.32.2"

// Content is content in memory and the lock that pins it.
type Content struct {
	Lock   *manifest.Lock
	Config []byte
	Since  *manifest.Inventory // Build creates a delta for this site; nil: a complete bundle

	blobs    map[string][]byte // hex → bytes
	contents map[string][]fetch.Content
}

// NewContent returns an empty Content. config is a cluster config in YAML; "" is a
// minimal one.
func NewContent(config string) *Content {
	if config == "" {
		config = "apiVersion: " + manifest.APIVersion + "\nkind: Cluster\nmetadata: {name: demo}\n"
	}
	return &Content{
		Config: []byte(config), blobs: map[string][]byte{}, contents: map[string][]fetch.Content{},
		Lock: &manifest.Lock{
			APIVersion: manifest.APIVersion, Kind: manifest.LockKind, Cluster: "demo", Config: digest.FromString(config).String(),
			Created: time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC), Serial: 20260506120000,
			Platforms: []manifest.Platform{{OS: "linux", Arch: "amd64"}}, Sets: []manifest.Set{{Name: set}},
		},
	}
}

func (w *Content) put(b []byte) string {
	h := sha256.Sum256(b)
	name := hex.EncodeToString(h[:])
	w.blobs[name] = b
	return name
}

// Image adds an image for some architectures ("amd64"). Each has the given layers and one
// separate layer. The index lists the absent architectures as well.
func (w *Content) Image(ref string, architectures, absent []string, layers ...[]byte) (manifest.ImagePin, error) {
	im := manifest.ImagePin{
		ID: "image/" + ref, Names: []string{ref}, Reference: ref, Sets: []string{set}, MediaType: v1.MediaTypeImageIndex, Trust: manifest.FromPublished,
	}
	index := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex}
	for _, arch := range architectures {
		p, d, err := w.platform(ref, arch, layers)
		if err != nil {
			return im, err
		}
		im.Platforms = append(im.Platforms, p)
		index.Manifests = append(index.Manifests, d)
	}
	for _, arch := range absent {
		index.Manifests = append(index.Manifests, v1.Descriptor{
			MediaType: v1.MediaTypeImageManifest, Digest: digest.FromString(ref + arch), Size: 5, Platform: &v1.Platform{OS: "linux", Architecture: arch},
		})
	}
	d, err := w.document(ref, fetch.IndexRole, index.MediaType, index)
	if err != nil {
		return im, err
	}
	im.Digest, im.Size = d.Digest.String(), d.Size
	w.Lock.Images = append(w.Lock.Images, im)
	return im, nil
}

// Referrer adds an artifact that refers to an image of the same repository.
func (w *Content) Referrer(ref string, subject manifest.ImagePin, kind string, annotations map[string]string) error {
	config := w.content(ref, fetch.ConfigRole, kind+".config", []byte(`{"of":"`+ref+`"}`))
	d, err := w.document(ref, fetch.ManifestRole, v1.MediaTypeImageManifest, v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest, ArtifactType: kind, Config: config, Layers: []v1.Descriptor{},
		Subject: &v1.Descriptor{MediaType: subject.MediaType, Digest: digest.Digest(subject.Digest), Size: subject.Size}, Annotations: annotations,
	})
	w.Lock.Images = append(w.Lock.Images, manifest.ImagePin{
		ID: "image/" + ref, Names: []string{ref}, Reference: ref, Sets: []string{set}, MediaType: d.MediaType, Digest: d.Digest.String(), Size: d.Size,
		Trust: manifest.FromPublished, Platforms: []manifest.PlatformImage{{
			Platform: w.Lock.Platforms[0], MediaType: d.MediaType, Digest: d.Digest.String(), Size: d.Size, Content: config.Size,
		}},
	})
	return err
}

// platform adds the image of one architecture.
func (w *Content) platform(ref, arch string, layers [][]byte) (manifest.PlatformImage, v1.Descriptor, error) {
	config, err := w.document(ref, fetch.ConfigRole, v1.MediaTypeImageConfig, map[string]any{
		"os": "linux", "architecture": arch, "config": map[string]any{}, "rootfs": map[string]any{"type": "layers", "diff_ids": []string{}},
	})
	if err != nil {
		return manifest.PlatformImage{}, config, err
	}
	m := v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest, Config: config}
	content := config.Size
	for _, l := range append(slices.Clone(layers), []byte("layer of "+ref+" for "+arch)) {
		d := w.content(ref, fetch.LayerRole, v1.MediaTypeImageLayerGzip, l)
		m.Layers = append(m.Layers, d)
		content += d.Size
	}
	d, err := w.document(ref, fetch.ManifestRole, m.MediaType, m)
	if err != nil {
		return manifest.PlatformImage{}, d, err
	}
	p := manifest.PlatformImage{
		Platform: manifest.Platform{OS: "linux", Arch: arch}, MediaType: d.MediaType, Digest: d.Digest.String(), Size: d.Size, Content: content,
	}
	d.Platform = &v1.Platform{OS: "linux", Architecture: arch}
	return p, d, nil
}

func (w *Content) document(ref string, role fetch.Role, media string, v any) (v1.Descriptor, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return v1.Descriptor{}, err
	}
	return w.content(ref, role, media, text), nil
}

func (w *Content) content(ref string, role fetch.Role, media string, b []byte) v1.Descriptor {
	d := v1.Descriptor{MediaType: media, Digest: digest.Digest("sha256:" + w.put(b)), Size: int64(len(b))}
	c := fetch.Content{Digest: d.Digest.String(), Size: d.Size, MediaType: media, Role: role}
	if !slices.Contains(w.contents[ref], c) {
		w.contents[ref] = append(w.contents[ref], c)
	}
	return d
}

// Binary adds a program of one file for linux/amd64.
func (w *Content) Binary(name, version string, content []byte) {
	w.Lock.Artifacts = append(w.Lock.Artifacts, manifest.Artifact{
		ID: "binary/" + name + "/" + version + "/linux/amd64", Kind: manifest.Binary, Name: name, Version: version, Sets: []string{set},
		Platform: manifest.Platform{OS: "linux", Arch: "amd64"}, Address: "https://example.com/" + name,
		Size: int64(len(content)), SHA256: w.put(content), Trust: manifest.FromCatalog,
	})
}

// Debs adds a repository of packages for Debian 12 on amd64, by path.
func (w *Content) Debs(files map[string]string) {
	a := manifest.Artifact{
		ID: "packages/debian-12/12/linux/amd64", Kind: manifest.Packages, Name: "debian-12", Version: "12", Sets: []string{set},
		Platform: manifest.Platform{OS: "linux", Arch: "amd64", Distribution: "debian", Release: "12"}, Trust: manifest.FromPublished,
		Packages: &manifest.PackageSet{Format: manifest.Deb, Want: []string{"socat"}, Date: w.Lock.Created},
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		m := manifest.Member{Path: name, Name: name, Size: int64(len(files[name])), SHA256: w.put([]byte(files[name]))}
		if path.Ext(name) == ".deb" {
			m.Package, m.Address, m.Record = strings.TrimSuffix(path.Base(name), ".deb")+" (amd64)", "https://deb.example/"+name, "Package: x"
		}
		a.Members = append(a.Members, m)
	}
	w.Lock.Artifacts = append(w.Lock.Artifacts, a)
}

// Build writes the bundle to dir and returns the archive's path.
func (w *Content) Build(ctx context.Context, dir string) (string, error) {
	cache, err := fetch.OpenCache(filepath.Join(dir, "cache"))
	if err != nil {
		return "", err
	}
	w.Lock.Sort()
	out := filepath.Join(dir, "demo.tar.zst")
	_, err = bundle.Build(ctx, bundle.BuildRequest{
		Lock: w.Lock, Config: w.Config, Output: out, Cache: cache, Fetcher: &source{w, cache}, Parallel: 2, Since: w.Since,
	})
	return out, err
}

// source is a bundle.Fetcher for the blobs of a Content.
type source struct {
	*Content
	cache *fetch.Cache
}

func (s *source) bring(ctx context.Context, name string, size int64) error {
	b, ok := s.blobs[name]
	if !ok {
		return fmt.Errorf("no blob %s", name)
	}
	return s.cache.Put(ctx, name, size, bytes.NewReader(b))
}

// FetchArtifact implements bundle.Fetcher.
func (s *source) FetchArtifact(ctx context.Context, a manifest.Artifact) error {
	for _, b := range a.Blobs() {
		if err := s.bring(ctx, b.SHA256, b.Size); err != nil {
			return err
		}
	}
	return nil
}

// FetchMember implements bundle.Fetcher.
func (s *source) FetchMember(ctx context.Context, _ manifest.Artifact, m manifest.Member) error {
	return s.bring(ctx, m.SHA256, m.Size)
}

// ImageContent implements bundle.Fetcher.
func (s *source) ImageContent(_ context.Context, im manifest.ImagePin) ([]fetch.Content, error) {
	return s.contents[im.Reference], nil
}

// FetchContent implements bundle.Fetcher.
func (s *source) FetchContent(ctx context.Context, _ manifest.ImagePin, c fetch.Content) error {
	return s.bring(ctx, strings.TrimPrefix(c.Digest, "sha256:"), c.Size)
}

// StreamArtifact implements bundle.Fetcher: everything goes through the cache.
func (s *source) StreamArtifact(manifest.Artifact) fetch.Stream { return nil }

// UnpackArtifact implements bundle.Fetcher.
func (s *source) UnpackArtifact(manifest.Artifact) fetch.Unpack { return nil }

// StreamMember implements bundle.Fetcher.
func (s *source) StreamMember(manifest.Artifact, manifest.Member) fetch.Stream { return nil }

// StreamContent implements bundle.Fetcher.
func (s *source) StreamContent(manifest.ImagePin, fetch.Content) fetch.Stream { return nil }
