package registry_test

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
)

// layoutOf reads the complete layout of an image.
func layoutOf(t *testing.T, src registry.Source, im manifest.ImagePin, blobs []v1.Descriptor) (names []string, files map[string]string) {
	t.Helper()
	l, err := registry.NewLayout(src, im, []string{"a.example/one:1", "a.example/one@" + im.Digest}, blobs)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	files = map[string]string{}
	r := tar.NewReader(l)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		names, files[h.Name] = append(names, h.Name), string(b)
	}
	if rest, err := io.ReadAll(l); err != nil || len(rest) > 0 {
		t.Errorf("%d bytes after the end, %v", len(rest), err)
	}
	return names, files
}

// TestLayoutHoldsOnePlatform: of an index with two platforms and a gap, the blobs of
// one, byte for byte as published, under both names.
func TestLayoutHoldsOnePlatform(t *testing.T) {
	b := carried(t)
	im := b.Lock.Images[2]
	blobs, err := registry.ForPlatform(b, im, manifest.Platform{OS: "linux", Arch: "arm64"})
	if err != nil {
		t.Fatal(err)
	}
	names, files := layoutOf(t, b, im, blobs)
	if len(names) != 2+5 || names[0] != "oci-layout" || names[len(names)-1] != "index.json" { // index, manifest, config, two layers
		t.Errorf("%v", names)
	}
	for name, text := range files {
		if hex, ok := strings.CutPrefix(name, "blobs/sha256/"); ok && digest.FromString(text).Encoded() != hex {
			t.Errorf("%s holds something else", name)
		}
	}
	if files["blobs/"+strings.Replace(im.Digest, ":", "/", 1)] == "" {
		t.Error("the published index is not there")
	}
	if files["blobs/"+strings.Replace(im.Platforms[0].Digest, ":", "/", 1)] != "" {
		t.Error("another platform's manifest is there")
	}
	var index v1.Index
	if err := json.Unmarshal([]byte(files["index.json"]), &index); err != nil {
		t.Fatal(err)
	}
	var called []string
	for _, d := range index.Manifests {
		called = append(called, d.Annotations["io.containerd.image.name"])
		if d.Digest.String() != im.Digest || d.Size != im.Size || d.MediaType != im.MediaType || d.Platform != nil {
			t.Errorf("%+v", d)
		}
	}
	if !slices.Equal(called, []string{"a.example/one:1", "a.example/one@" + im.Digest}) {
		t.Errorf("%v", called)
	}
	if _, err := registry.ForPlatform(b, im, manifest.Platform{OS: "linux", Arch: "s390x"}); err == nil {
		t.Error("a platform that the bundle lacks")
	}
}

// TestLayoutOfADamagedBlob: one flipped bit ends the stream before anything names
// the image.
func TestLayoutOfADamagedBlob(t *testing.T) {
	path := carriedFile(t)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(text), "layer of registry.k8s.io/pause:3.10 for amd64")
	if at < 0 {
		t.Fatal("the layer is not stored as it is")
	}
	text[at] ^= 1
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(t.Context(), path, bundle.Policy{AllowUnsigned: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	im := b.Lock.Images[2]
	blobs, err := registry.ForPlatform(b, im, manifest.Platform{OS: "linux", Arch: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := registry.NewLayout(b, im, []string{"a.example/one:1"}, blobs)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sent, err := io.ReadAll(l)
	if err == nil || strings.Contains(string(sent), "index.json") {
		t.Errorf("%d bytes, %v", len(sent), err)
	}
}

// lies says another size of its blobs than they have.
type lies struct {
	registry.Source
	by int64
}

func (s lies) Blob(d string) (io.ReadCloser, int64, error) {
	rc, n, err := s.Source.Blob(d)
	if s.by > 0 {
		return struct {
			io.Reader
			io.Closer
		}{io.LimitReader(rc, n-s.by), rc}, n, err
	}
	return rc, n + s.by, err
}

// TestLayoutOfABlobOfAnotherSize: it would move all that follows in the tar.
func TestLayoutOfABlobOfAnotherSize(t *testing.T) {
	b := carried(t)
	im := b.Lock.Images[0]
	blobs, err := registry.ForPlatform(b, im, manifest.Platform{OS: "linux", Arch: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []int64{-1, 1} {
		l, err := registry.NewLayout(lies{b, by}, im, []string{"a.example/one:1"}, blobs)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, l); err == nil {
			t.Errorf("%d bytes are missing, and there is no error", by)
		}
		l.Close()
	}
}
