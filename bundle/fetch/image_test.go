package fetch

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/manifest"
)

// everything pins an image and brings all its content into the cache.
func everything(t *testing.T, c *Client, im manifest.ImagePin, platforms ...manifest.Platform) (manifest.ImagePin, []Content) {
	t.Helper()
	im, err := c.PinImage(t.Context(), im, platforms)
	if err != nil {
		t.Fatal(err)
	}
	contents, err := c.ImageContent(t.Context(), im)
	if err != nil {
		t.Fatal(err)
	}
	for _, ct := range contents {
		if err := c.FetchContent(t.Context(), im, ct); err != nil {
			t.Fatal(err)
		}
		mustHoldDigest(t, c.cache, ct)
	}
	return im, contents
}

func mustHoldDigest(t *testing.T, c *Cache, ct Content) {
	t.Helper()
	f, err := c.Open(digest.Digest(ct.Digest).Encoded())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil || digest.FromBytes(b).String() != ct.Digest || int64(len(b)) != ct.Size {
		t.Errorf("%s: cached blob of %d bytes is %s, %v", ct.Digest, len(b), digest.FromBytes(b), err)
	}
}

// Some tools that make indexes put the config's media type into artifactType:
// what they describe so is an image all the same.
func TestIndexThatCallsImagesArtifacts(t *testing.T) {
	for _, kind := range []string{ocispec.MediaTypeImageConfig, "application/vnd.docker.container.image.v1+json"} {
		g := newRegistry()
		amd := g.image(t, "team/app", "", "linux/amd64", noise(1, 5000))
		amd.ArtifactType = kind
		g.index(t, "team/app", "v1", amd)
		u := serve(t, g.ServeHTTP)
		im, _ := everything(t, client(t, options(t, u)), pin("upstream.test/team/app:v1"), amd64)
		if len(im.Platforms) != 1 || im.Platforms[0].Digest != amd.Digest.String() {
			t.Errorf("%s: pinned %+v", kind, im.Platforms)
		}
	}
}

func TestSparseIndex(t *testing.T) {
	g := newRegistry()
	shared, own := noise(1, 5000), noise(2, 3000)
	amd := g.image(t, "team/app", "", "linux/amd64", shared, own, shared)
	arm := g.image(t, "team/app", "", "linux/arm64/v8", shared)
	s390 := g.image(t, "team/app", "", "linux/s390x", noise(3, 1000))
	proof := g.image(t, "team/app", "", "unknown/unknown", noise(4, 1000))
	marked := g.image(t, "team/app", "", "linux/amd64", noise(5, 1000))
	marked.Annotations = map[string]string{"vnd.docker.reference.type": "attestation-manifest"}
	signature := g.image(t, "team/app", "", "linux/amd64", noise(6, 1000))
	signature.ArtifactType = "application/vnd.example.signature"
	// Before the image, where the first of equals would be chosen.
	root := g.index(t, "team/app", "v1", marked, signature, amd, arm, s390, proof)
	u := serve(t, g.ServeHTTP)
	o := options(t, u)
	c := client(t, o)

	im, contents := everything(t, c, pin("upstream.test/team/app:v1"), arm64, manifest.Platform{OS: "linux", Arch: "amd64", Distribution: "debian", Release: "12"}, amd64)
	configSize := func(d ocispec.Descriptor) int64 { return mustConfig(t, g, d).Size }
	want := pin("upstream.test/team/app:v1")
	want.MediaType, want.Digest, want.Size, want.Trust = ocispec.MediaTypeImageIndex, root.Digest.String(), root.Size, manifest.FromContent
	want.Platforms = []manifest.PlatformImage{
		{Platform: amd64, MediaType: amd.MediaType, Digest: amd.Digest.String(), Size: amd.Size, Content: 8000 + configSize(amd)},
		{Platform: arm64, MediaType: arm.MediaType, Digest: arm.Digest.String(), Size: arm.Size, Content: 5000 + configSize(arm)},
	}
	if diff := cmp.Diff(want, im); diff != "" {
		t.Errorf("pinned (-want +got):\n%s", diff)
	}
	wantContents := []Content{
		{root.Digest.String(), root.Size, root.MediaType, IndexRole, manifest.Platform{}},
		{amd.Digest.String(), amd.Size, amd.MediaType, ManifestRole, amd64},
		{arm.Digest.String(), arm.Size, arm.MediaType, ManifestRole, arm64},
		{mustConfig(t, g, amd).Digest.String(), configSize(amd), ocispec.MediaTypeImageConfig, ConfigRole, amd64},
		{mustConfig(t, g, arm).Digest.String(), configSize(arm), ocispec.MediaTypeImageConfig, ConfigRole, arm64},
		{digest.FromBytes(shared).String(), 5000, ocispec.MediaTypeImageLayerGzip, LayerRole, manifest.Platform{}},
		{digest.FromBytes(own).String(), 3000, ocispec.MediaTypeImageLayerGzip, LayerRole, amd64},
	}
	if diff := cmp.Diff(wantContents, contents); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
	for _, d := range []ocispec.Descriptor{s390, proof, marked, signature} {
		if _, err := c.cache.Open(d.Digest.Encoded()); err == nil {
			t.Errorf("%v was fetched", d.Platform)
		}
	}
	if got, want := len(blobsOf(t, c.cache)), len(contents); got != want {
		t.Errorf("%d blobs in the cache, want %d", got, want)
	}
	// All of it is there: the lock and the cache are enough.
	u.Close()
	again, err := c.ImageContent(t.Context(), im)
	if err != nil || !cmp.Equal(again, contents) {
		t.Errorf("without network: %v", err)
	}
	for _, ct := range again {
		if err := c.FetchContent(t.Context(), im, ct); err != nil {
			t.Error(err)
		}
	}
}

// mustConfig gives the config of a stored manifest.
func mustConfig(t *testing.T, g *testRegistry, d ocispec.Descriptor) ocispec.Descriptor {
	t.Helper()
	doc, err := parseDocument(g.documents["team/app@"+d.Digest.String()].bytes, d.MediaType)
	if err != nil {
		t.Fatal(err)
	}
	return doc.config
}

func TestNestedIndex(t *testing.T) {
	g := newRegistry()
	amd := g.image(t, "app", "", "linux/amd64", noise(1, 1000))
	arm := g.image(t, "app", "", "linux/arm64", noise(2, 1000))
	bare := amd
	bare.Platform = nil
	inner := g.index(t, "app", "", bare)
	middle := g.index(t, "app", "", inner)
	other := g.index(t, "app", "", arm)
	root := g.index(t, "app", "v1", other, middle)
	u := serve(t, g.ServeHTTP)
	im, contents := everything(t, client(t, options(t, u)), pin("upstream.test/app:v1"), amd64)
	if im.Digest != root.Digest.String() || im.Platforms[0].Digest != amd.Digest.String() {
		t.Errorf("pinned %+v", im)
	}
	var got []string
	for _, ct := range contents[:4] {
		got = append(got, ct.Digest)
	}
	want := []string{root.Digest.String(), middle.Digest.String(), inner.Digest.String(), amd.Digest.String()}
	if diff := cmp.Diff(want, got); diff != "" || len(contents) != 6 {
		t.Errorf("content of %d (-want +got):\n%s", len(contents), diff)
	}
	deep := amd
	for range 6 {
		deep = g.index(t, "app", "deep", deep)
	}
	_, err := client(t, options(t, u)).PinImage(t.Context(), pin("upstream.test/app:deep"), []manifest.Platform{amd64})
	if err == nil || !strings.Contains(err.Error(), "nested more than 4 deep") {
		t.Errorf("deep: error %v", err)
	}
	var many []ocispec.Descriptor
	for i := range maxSearched + 1 {
		b := []byte(`{"schemaVersion":2,"manifests":[],"n":` + itoa(i) + `}`)
		many = append(many, g.put("app", "", b, ocispec.MediaTypeImageIndex))
	}
	g.index(t, "app", "wide", many...)
	_, err = client(t, options(t, u)).PinImage(t.Context(), pin("upstream.test/app:wide"), []manifest.Platform{amd64})
	if err == nil || !strings.Contains(err.Error(), "more than 256 manifests") {
		t.Errorf("wide: error %v", err)
	}
}

func TestImagePlatforms(t *testing.T) {
	tests := []struct {
		name    string
		offered []string
		wanted  []manifest.Platform
		chosen  []string
		err     string
	}{
		{"arm64 with variant", []string{"linux/arm64/v8"}, []manifest.Platform{arm64}, []string{"linux/arm64/v8"}, ""},
		{"arm64 without", []string{"linux/arm64"}, []manifest.Platform{arm64}, []string{"linux/arm64"}, ""},
		{"the first of equals", []string{"linux/arm64/v8", "linux/arm64"}, []manifest.Platform{arm64}, []string{"linux/arm64/v8"}, ""},
		{"not too new", []string{"linux/amd64/v3", "linux/amd64/v1"}, []manifest.Platform{amd64}, []string{"linux/amd64/v1"}, ""},
		{"only too new", []string{"linux/amd64/v3"}, []manifest.Platform{amd64}, nil, "has no image for linux/amd64; it has linux/amd64/v3"},
		{"best of arm", []string{"linux/arm/v6", "linux/arm/v7"}, []manifest.Platform{{OS: "linux", Arch: "arm"}}, []string{"linux/arm/v7"}, ""},
		{"other system", []string{"windows/amd64", "linux/amd64"}, []manifest.Platform{amd64}, []string{"linux/amd64"}, ""},
		{"missing", []string{"linux/amd64", "linux/s390x", "windows/amd64"}, []manifest.Platform{amd64, arm64}, nil, "has no image for linux/arm64; it has linux/amd64, linux/s390x, windows/amd64"},
		{"nothing there", nil, []manifest.Platform{arm64}, nil, "it has none"},
		{"nothing wanted", []string{"linux/amd64"}, nil, nil, "no platform is selected"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := newRegistry()
			byPlatform := map[string]string{}
			children := []ocispec.Descriptor{}
			for i, p := range test.offered {
				d := g.image(t, "app", "", p, noise(byte(i), 100))
				byPlatform[p] = d.Digest.String()
				children = append(children, d)
			}
			g.index(t, "app", "v1", children...)
			u := serve(t, g.ServeHTTP)
			im, err := client(t, options(t, u)).PinImage(t.Context(), pin("upstream.test/app:v1"), test.wanted)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want one with %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range test.chosen {
				if im.Platforms[i].Digest != byPlatform[p] {
					t.Errorf("chose %s, want that of %s", im.Platforms[i].Digest, p)
				}
			}
		})
	}
}

func TestImageWithoutIndex(t *testing.T) {
	g := newRegistry()
	d := g.image(t, "app", "v1", "linux/amd64", noise(1, 1000))
	chart := g.blob("application/vnd.cncf.helm.config.v1+json", []byte("no platform"))
	m := ocispec.Manifest{Config: chart}
	m.SchemaVersion = 2
	g.put("app", "chart", indented(t, m), ocispec.MediaTypeImageManifest)
	u := serve(t, g.ServeHTTP)
	c := client(t, options(t, u))
	im, contents := everything(t, c, pin("upstream.test/app:v1"), amd64)
	if im.Digest != d.Digest.String() || im.Platforms[0].Digest != im.Digest || im.MediaType != ocispec.MediaTypeImageManifest {
		t.Errorf("pinned %+v", im)
	}
	if len(contents) != 3 || contents[0].Platform != amd64 || contents[0].Role != ManifestRole {
		t.Errorf("content %+v", contents)
	}
	for reference, want := range map[string]string{
		"app:v1":    "has no image for linux/arm64; it has linux/amd64",
		"app:chart": "has no image for linux/arm64; it has none",
	} {
		_, err := c.PinImage(t.Context(), pin("upstream.test/"+reference), []manifest.Platform{arm64})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", reference, err)
		}
	}
}

// TestDockerImage keeps what docker's older types have, byte for byte.
func TestDockerImage(t *testing.T) {
	g := newRegistry()
	config := g.blob("application/vnd.docker.container.image.v1+json", []byte(`{"os":"linux","architecture":"amd64"}`))
	layer := g.blob("application/vnd.docker.image.rootfs.diff.tar.gzip", noise(1, 1000))
	m := ocispec.Manifest{MediaType: dockerManifest, Config: config, Layers: []ocispec.Descriptor{layer}}
	m.SchemaVersion = 2
	d := g.put("app", "", indented(t, m), dockerManifest)
	d.Platform = platformFrom("linux/amd64")
	x := ocispec.Index{MediaType: dockerIndex, Manifests: []ocispec.Descriptor{d}}
	x.SchemaVersion = 2
	root := g.put("app", "v1", indented(t, x), dockerIndex)
	u := serve(t, g.ServeHTTP)
	im, contents := everything(t, client(t, options(t, u)), pin("upstream.test/app:v1"), amd64)
	if im.Digest != root.Digest.String() || im.MediaType != dockerIndex || im.Platforms[0].MediaType != dockerManifest || len(contents) != 4 {
		t.Errorf("pinned %+v with %d contents", im, len(contents))
	}
}

func TestHostileDocuments(t *testing.T) {
	a := digest.FromString("a").String()
	config := `"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"` + a + `","size":1}`
	oci := ocispec.MediaTypeImageManifest
	tests := []struct{ name, document, mediaType, err string }{
		{"schema 1", `{"schemaVersion":1,"name":"app","fsLayers":[]}`, "application/vnd.docker.distribution.manifest.v1+prettyjws", "schema 1"},
		{"schema 1 by its body", `{"schemaVersion":1}`, "", "schema 1"},
		{"not JSON", `<html>`, oci, "manifest is not valid"},
		{"empty", ``, oci, "manifest is not valid"},
		{"index and image at once", `{"schemaVersion":2,` + config + `,"manifests":[]}`, oci, "both an index and an image"},
		{"index called an image", `{"schemaVersion":2,"manifests":[]}`, oci, "does not match its media type"},
		{"image called an index", `{"schemaVersion":2,` + config + `}`, ocispec.MediaTypeImageIndex, "does not match its media type"},
		{"says another type", `{"schemaVersion":2,"mediaType":"` + dockerManifest + `",` + config + `}`, oci, "the registry states"},
		{"unknown type", `{"schemaVersion":2,"mediaType":"application/x",` + config + `}`, oci, "not one of an image"},
		{"neither", `{"schemaVersion":2}`, oci, "does not match its media type"},
		{"sha512", `{"schemaVersion":2,` + strings.ReplaceAll(config, a, "sha512:"+strings.Repeat("a", 128)) + `}`, oci, "is not sha256"},
		{"no digest", `{"schemaVersion":2,` + strings.ReplaceAll(config, a, "../../x") + `}`, oci, `digest "../../x"`},
		{"negative size", `{"schemaVersion":2,` + strings.ReplaceAll(config, `"size":1`, `"size":-1`) + `}`, oci, "has a size of -1"},
		{"foreign layer", `{"schemaVersion":2,` + config + `,"layers":[{"mediaType":"x","size":1,"digest":"` + a + `","urls":["https://x/y"]}]}`, oci, "stored outside the registry"},
		{"foreign type", `{"schemaVersion":2,` + config + `,"layers":[{"mediaType":"application/vnd.docker.image.rootfs.foreign.diff.tar.gzip","size":1,"digest":"` + a + `"}]}`, oci, "stored outside the registry"},
		{"too long", strings.Repeat(" ", documentBytes+1), oci, "too many for a manifest"},
		{"too long a child", `{"schemaVersion":2,"manifests":[{"mediaType":"` + oci + `","digest":"` + a + `","size":99999999,"platform":{"os":"linux","architecture":"amd64"}}]}`, ocispec.MediaTypeImageIndex, "more than the 4194304"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := newRegistry()
			g.put("app", "v1", []byte(test.document), test.mediaType)
			u := serve(t, g.ServeHTTP)
			o := options(t, u)
			_, err := client(t, o).PinImage(t.Context(), pin("upstream.test/app:v1"), []manifest.Platform{amd64})
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want one with %q", err, test.err)
			}
		})
	}
}

func TestDocumentTypeOfCarelessRegistry(t *testing.T) {
	g := newRegistry()
	g.image(t, "app", "v1", "linux/amd64", noise(1, 10))
	for k, d := range g.documents {
		d.mediaType = "text/plain; charset=utf-8"
		g.documents[k] = d
	}
	u := serve(t, g.ServeHTTP)
	everything(t, client(t, options(t, u)), pin("upstream.test/app:v1"), amd64)
}

func FuzzParseDocument(f *testing.F) {
	a := digest.FromString("a").String()
	f.Add([]byte(`{"schemaVersion":2,"manifests":[{"mediaType":"x","digest":"`+a+`","size":1}]}`), ocispec.MediaTypeImageIndex)
	f.Add([]byte(`{"schemaVersion":2,"config":{"digest":"`+a+`","size":1},"layers":[]}`), "")
	f.Add([]byte(`{"schemaVersion":1,"fsLayers":[]}`), dockerSchema1+"+json")
	f.Fuzz(func(t *testing.T, b []byte, served string) {
		d, err := parseDocument(b, served)
		if err != nil {
			return
		}
		if d.digest != digest.FromBytes(b) || !bytes.Equal(d.bytes, b) {
			t.Error("bytes were changed")
		}
		all := d.children
		if !d.index() {
			all = append(all, d.config)
			all = append(all, d.layers...)
		}
		for _, c := range all {
			if c.Digest.Algorithm() != digest.SHA256 || c.Digest.Validate() != nil || c.Size < 0 {
				t.Errorf("took %+v", c)
			}
		}
	})
}

// TestWrongContentFromRegistry has a registry serve other bytes than a digest names.
func TestWrongContentFromRegistry(t *testing.T) {
	g := newRegistry()
	layer := noise(1, 5000)
	child := g.image(t, "app", "", "linux/amd64", layer)
	root := g.index(t, "app", "v1", child)
	u := serve(t, g.ServeHTTP)
	o := options(t, u)
	c := client(t, o)
	im, contents := everything(t, c, pin("upstream.test/app:v1"), amd64)

	// The tag moves: what the lock pins is no longer what upstream has.
	other := g.index(t, "app", "v1", child, child)
	im2 := pin("upstream.test/app:v1")
	im2.Digest, im2.Trust = root.Digest.String(), manifest.FromCatalog
	_, err := c.PinImage(t.Context(), im2, []manifest.Platform{amd64})
	e, ok := errors.AsType[*DigestError](err)
	if !ok || e.Want != root.Digest.String() || e.Got != other.Digest.String() || !strings.Contains(err.Error(), root.Digest.Encoded()) {
		t.Errorf("moved tag: error %v", err)
	}
	// A reference that has the digest asks for that.
	byDigest := pin("upstream.test/app:v1@" + root.Digest.String())
	if got, err := c.PinImage(t.Context(), byDigest, []manifest.Platform{amd64}); err != nil || got.Digest != root.Digest.String() || got.Trust != manifest.FromConfig {
		t.Errorf("by digest: %v, %s, %s", err, got.Digest, got.Trust)
	}
	for i, ct := range contents {
		o := options(t, u)
		c := client(t, o)
		key := "app@" + ct.Digest
		had, haveDocument := g.documents[key]
		hadBlob := g.blobs[ct.Digest]
		if haveDocument {
			g.documents[key] = testDocument{append(bytes.Clone(had.bytes), ' '), had.mediaType}
		} else {
			g.blobs[ct.Digest] = append([]byte{hadBlob[0] ^ 1}, hadBlob[1:]...)
		}
		err := c.FetchContent(t.Context(), im, ct)
		if !is[*DigestError](err) {
			t.Errorf("content %d (%s): error %v, want a DigestError", i, ct.Role, err)
		} else if n := strings.Count(err.Error(), "upstream.test/app"); n != 1 {
			t.Errorf("content %d (%s): its image is named %d times: %v", i, ct.Role, n, err)
		}
		if o.Cache.Has(digest.Digest(ct.Digest).Encoded(), ct.Size) {
			t.Errorf("content %d is in the cache", i)
		}
		if haveDocument {
			g.documents[key] = had
		} else {
			g.blobs[ct.Digest] = hadBlob
		}
	}
}

// TestWrongContentIsRequestedAgain: a bit that flipped on the way ends no build,
// whatever it is a part of.
func TestWrongContentIsRequestedAgain(t *testing.T) {
	g := newRegistry()
	g.index(t, "app", "v1", g.image(t, "app", "", "linux/amd64", noise(1, 5000)))
	u := serve(t, g.ServeHTTP)
	im, contents := everything(t, client(t, options(t, u)), pin("upstream.test/app:v1"), amd64)
	byDigest := pin("upstream.test/app:v1@" + im.Digest)
	for _, ct := range contents {
		var mu sync.Mutex
		answers := 0
		flips := serve(t, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if !strings.HasSuffix(r.URL.Path, ct.Digest) {
				g.ServeHTTP(w, r)
				return
			}
			rec := httptest.NewRecorder()
			g.ServeHTTP(rec, r)
			b := rec.Body.Bytes()
			if answers++; answers == 1 {
				b[len(b)/2] ^= 1
			}
			w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
			_, _ = w.Write(b)
		})
		c := client(t, options(t, flips))
		if err := c.FetchContent(t.Context(), im, ct); err != nil || answers != 2 {
			t.Errorf("%s: %d answers, %v", ct.Role, answers, err)
		}
		if ct.Digest == im.Digest {
			answers = 0
			if got, err := client(t, options(t, flips)).PinImage(t.Context(), byDigest, []manifest.Platform{amd64}); err != nil || got.Digest != im.Digest || answers != 2 {
				t.Errorf("by digest: %d answers, %s, %v", answers, got.Digest, err)
			}
		}
	}
}

func TestLockThatDoesNotFit(t *testing.T) {
	g := newRegistry()
	g.index(t, "app", "v1", g.image(t, "app", "", "linux/amd64", noise(1, 10)))
	stray := g.image(t, "app", "", "linux/amd64", noise(2, 10))
	u := serve(t, g.ServeHTTP)
	c := client(t, options(t, u))
	im, _ := everything(t, c, pin("upstream.test/app:v1"), amd64)
	im.Platforms[0].Digest = stray.Digest.String()
	if _, err := c.ImageContent(t.Context(), im); err == nil || !strings.Contains(err.Error(), "does not contain the manifest") {
		t.Errorf("error %v", err)
	}
	im.Size++
	if _, err := c.ImageContent(t.Context(), im); !is[*SizeError](err) {
		t.Errorf("error %v, want a SizeError", err)
	}
	if _, err := c.ImageContent(t.Context(), pin("upstream.test/app:v1")); err == nil || !strings.Contains(err.Error(), "not pinned") {
		t.Errorf("error %v", err)
	}
}

// TestSizesThatDisagree: no blob has two sizes.
func TestSizesThatDisagree(t *testing.T) {
	g := newRegistry()
	layer := g.blob(ocispec.MediaTypeImageLayerGzip, noise(1, 100))
	var children []ocispec.Descriptor
	for i, p := range []string{"linux/amd64", "linux/arm64"} {
		l := layer
		l.Size += int64(i)
		m := ocispec.Manifest{Config: g.blob(ocispec.MediaTypeImageConfig, []byte("{}")), Layers: []ocispec.Descriptor{l}}
		m.SchemaVersion = 2
		d := g.put("app", "", indented(t, m), ocispec.MediaTypeImageManifest)
		d.Platform = platformFrom(p)
		children = append(children, d)
	}
	g.index(t, "app", "v1", children...)
	u := serve(t, g.ServeHTTP)
	c := client(t, options(t, u))
	im, err := c.PinImage(t.Context(), pin("upstream.test/app:v1"), []manifest.Platform{amd64, arm64})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.ImageContent(t.Context(), im); err == nil || !strings.Contains(err.Error(), "is listed with both 100 and 101 bytes") {
		t.Errorf("error %v", err)
	}
}

// TestLayers breaks the connection under a layer that two images share.
func TestLayers(t *testing.T) {
	g := newRegistry()
	layer := noise(1, 400<<10)
	g.image(t, "a", "v1", "linux/amd64", layer)
	g.image(t, "b", "v1", "linux/amd64", layer)
	path := "/blobs/" + digest.FromBytes(layer).String()
	var mu sync.Mutex
	gets := 0
	g.before = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, path) {
			return false
		}
		mu.Lock()
		gets++
		n := gets
		mu.Unlock()
		switch n {
		case 1:
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			half(layer, "")(w, r)
		default:
			return false
		}
		return true
	}
	u := serve(t, g.ServeHTTP)
	p := newProgress()
	o := options(t, u)
	o.Progress = p
	c := client(t, o)
	var group sync.WaitGroup
	for _, repo := range []string{"a", "b"} {
		im, err := c.PinImage(t.Context(), pin("upstream.test/"+repo+":v1"), []manifest.Platform{amd64})
		if err != nil {
			t.Fatal(err)
		}
		contents, err := c.ImageContent(t.Context(), im)
		if err != nil {
			t.Fatal(err)
		}
		for _, ct := range contents {
			group.Go(func() {
				if err := c.FetchContent(t.Context(), im, ct); err != nil {
					t.Error(err)
				}
			})
		}
	}
	before := u.bytesSent()
	group.Wait()
	mustHold(t, o.Cache, layer)
	if gets != 3 {
		t.Errorf("%d requests for the layer, want 3", gets)
	}
	if got := u.bytesSent(); got > before+int64(len(layer)) {
		t.Errorf("%d bytes sent for a layer of %d", got-before, len(layer))
	}
	p.mustEnd(t)
}

func TestBlobsRedirected(t *testing.T) {
	g := newRegistry()
	layer := noise(1, 5000)
	g.image(t, "app", "v1", "linux/amd64", layer)
	g.withPassword("me", "pass")
	store := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("credentials went along to the store")
		}
		served(layer, "")(w, r)
	})
	inner := g.before
	g.before = func(w http.ResponseWriter, r *http.Request) bool {
		if inner(w, r) {
			return true
		}
		if strings.HasSuffix(r.URL.Path, digest.FromBytes(layer).String()) {
			http.Redirect(w, r, store.URL+"/x?sig=secret", http.StatusTemporaryRedirect)
			return true
		}
		return false
	}
	u := serve(t, g.ServeHTTP)
	o := options(t, u)
	o.Sources.DockerConfig = dockerConfig(t, u.Listener.Addr().String(), "me", "pass")
	everything(t, client(t, o), pin("upstream.test/app:v1"), amd64)
}

func dockerConfig(t *testing.T, host, user, password string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.json")
	auth := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	write(t, path, []byte(`{"auths":{"`+host+`":{"auth":"`+auth+`"}}}`))
	return path
}

func TestRegistryLogin(t *testing.T) {
	for _, test := range []struct {
		name  string
		login func(*testRegistry)
	}{
		{"password", func(g *testRegistry) { g.withPassword("me", "pass") }},
		{"token", func(g *testRegistry) { g.withToken("me", "pass", 1000) }},
		{"token that ends", func(g *testRegistry) { g.withToken("me", "pass", 2) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := newRegistry()
			for _, repo := range []string{"a/b", "c"} {
				g.index(t, repo, "v1", g.image(t, repo, "", "linux/amd64", noise(1, 5000), noise(repo[0], 2000)))
			}
			test.login(g)
			u := serve(t, g.ServeHTTP)
			o := options(t, u)
			o.Sources.DockerConfig = dockerConfig(t, u.Listener.Addr().String(), "me", "pass")
			c := client(t, o)
			for _, repo := range []string{"a/b", "c"} {
				everything(t, c, pin("upstream.test/"+repo+":v1"), amd64)
			}
			for name, config := range map[string]string{
				"wrong password":       dockerConfig(t, u.Listener.Addr().String(), "me", "wrong"),
				"for another registry": dockerConfig(t, "elsewhere.test", "me", "pass"),
			} {
				o := options(t, u)
				o.Sources.DockerConfig = config
				_, err := client(t, o).PinImage(t.Context(), pin("upstream.test/c:v1"), []manifest.Platform{amd64})
				if e, ok := errors.AsType[*StatusError](err); !ok || e.Code != http.StatusUnauthorized || !strings.Contains(err.Error(), "docker login") {
					t.Errorf("%s: error %v", name, err)
				}
				if err != nil && strings.Contains(err.Error(), "wrong") {
					t.Errorf("%s: the error tells the password: %v", name, err)
				}
			}
		})
	}
}

// TestDefaultCredentials reads docker's own file where Sources names none.
func TestDefaultCredentials(t *testing.T) {
	g := newRegistry()
	g.image(t, "app", "v1", "linux/amd64", noise(1, 100))
	g.withPassword("me", "pass")
	u := serve(t, g.ServeHTTP)
	t.Setenv("HOME", t.TempDir())
	t.Setenv("DOCKER_CONFIG", filepath.Dir(dockerConfig(t, u.Listener.Addr().String(), "me", "pass")))
	everything(t, client(t, options(t, u)), pin("upstream.test/app:v1"), amd64)
}

func TestRegistryRefusals(t *testing.T) {
	for _, test := range []struct {
		name   string
		before func(http.ResponseWriter, *http.Request) bool
		asked  int // requests, with that for the login
		err    string
	}{
		{"unknown tag", nil, 2, "404 Not Found"},
		{"busy at the login", inTurnAnswers(1, status(503)), 3, "404 Not Found"},
		{"busy at the manifest", inTurnAnswers(2, status(429)), 3, "404 Not Found"},
		{"always busy", func(w http.ResponseWriter, r *http.Request) bool { w.WriteHeader(503); return true }, 3, "gave up after 3 attempts"},
		{"waits too long", func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Retry-After", "600")
			w.WriteHeader(429)
			return true
		}, 1, "429 Too Many Requests"},
		{"forbidden", func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/v2/" {
				refuse(w, 403, "DENIED", "not yours")
			}
			return true
		}, 2, "403 Forbidden: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := newRegistry()
			g.before = test.before
			u := serve(t, g.ServeHTTP)
			_, err := client(t, options(t, u)).PinImage(t.Context(), pin("upstream.test/app:v9"), []manifest.Platform{amd64})
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want one with %q", err, test.err)
			}
			if got := u.asked(""); got != test.asked {
				t.Errorf("%d requests, want %d", got, test.asked)
			}
		})
	}
}

// inTurnAnswers answers the n-th request, counted from 1, and no other.
func inTurnAnswers(n int, h http.HandlerFunc) func(http.ResponseWriter, *http.Request) bool {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if n--; n != 0 {
			return false
		}
		h(w, r)
		return true
	}
}

func TestRegistryOverTLS(t *testing.T) {
	g := newRegistry()
	g.image(t, "app", "v1", "linux/amd64", noise(1, 100))
	u, ca := secure(t, g.ServeHTTP)
	o := options(t, u)
	o.Sources.CAFile = ca
	o.Sources.Replace[0].PlainHTTP = false
	everything(t, client(t, o), pin("upstream.test/app:v1"), amd64)
}

// TestRegistryWithoutPermissionForPlainHTTP: the library would take a loopback
// registry for one without TLS.
func TestRegistryWithoutPermissionForPlainHTTP(t *testing.T) {
	g := newRegistry()
	g.image(t, "app", "v1", "linux/amd64", noise(1, 100))
	u := serve(t, g.ServeHTTP)
	o := options(t, u)
	o.Sources.Replace[0].PlainHTTP = false
	_, err := client(t, o).PinImage(t.Context(), pin("upstream.test/app:v1"), []manifest.Platform{amd64})
	if err == nil || u.asked("") != 0 {
		t.Errorf("error %v after %d plain requests", err, u.asked(""))
	}
}

func TestBadReference(t *testing.T) {
	c := client(t, Options{Cache: &Cache{}})
	if _, err := c.PinImage(t.Context(), pin("Not A Reference"), []manifest.Platform{amd64}); err == nil {
		t.Error("no error")
	}
}

// TestRegistryInProcess pulls from the registry of another project, which knows
// no open ranges and serves what was pushed to it.
func TestRegistryInProcess(t *testing.T) {
	g := newRegistry()
	layer := noise(1, 400<<10)
	child := g.image(t, "team/app", "", "linux/amd64", layer)
	root := g.index(t, "team/app", "v1", child)
	handler := ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0)))
	for d, b := range g.blobs {
		push(t, handler, http.MethodPost, "/v2/team/app/blobs/uploads/?digest="+d, "", b)
	}
	for _, d := range []ocispec.Descriptor{child, root} {
		push(t, handler, http.MethodPut, "/v2/team/app/manifests/"+d.Digest.String(), d.MediaType, g.documents["team/app@"+d.Digest.String()].bytes)
	}
	push(t, handler, http.MethodPut, "/v2/team/app/manifests/v1", root.MediaType, g.documents["team/app:v1"].bytes)
	var once sync.Once
	u := serve(t, func(w http.ResponseWriter, r *http.Request) {
		broken := false
		if strings.HasSuffix(r.URL.Path, digest.FromBytes(layer).String()) {
			once.Do(func() { half(layer, "")(w, r); broken = true })
		}
		if !broken {
			handler.ServeHTTP(w, r)
		}
	})
	began := time.Now()
	im, _ := everything(t, client(t, options(t, u)), pin("upstream.test/team/app:v1"), amd64)
	if im.Digest != root.Digest.String() {
		t.Errorf("digest %s, want %s", im.Digest, root.Digest)
	}
	t.Logf("%d requests in %s", u.asked(""), time.Since(began))
}

func push(t *testing.T, h http.Handler, method, path, mediaType string, b []byte) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, bytes.NewReader(b))
	r.Header.Set("Content-Type", mediaType)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusCreated {
		t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
}

func TestCorruptDocumentIsFetchedAgain(t *testing.T) {
	g := newRegistry()
	root := g.index(t, "app", "v1", g.image(t, "app", "", "linux/amd64", noise(1, 100)))
	u := serve(t, g.ServeHTTP)
	o := options(t, u)
	c := client(t, o)
	im, contents := everything(t, c, pin("upstream.test/app:v1"), amd64)
	bad := bytes.Repeat([]byte("x"), int(root.Size))
	write(t, o.Cache.blob(root.Digest.Encoded()), bad)
	again, err := c.ImageContent(t.Context(), im)
	if err != nil || !cmp.Equal(again, contents) {
		t.Errorf("%v, %+v", err, again)
	}
	mustHoldDigest(t, o.Cache, contents[0])
}
