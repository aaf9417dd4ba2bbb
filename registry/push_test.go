package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/transfer"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/registry/registrytest"
)

// shared is a layer that all images have.
var shared = []byte(strings.Repeat("shared ", 50<<10))

// carried is a bundle of two complete images and two whose indexes name a platform
// that is not there, one of them without a tag.
func carried(t *testing.T) *bundle.Bundle {
	t.Helper()
	b, err := bundle.Open(t.Context(), carriedFile(t), bundle.Policy{AllowUnsigned: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func carriedFile(t *testing.T) string {
	t.Helper()
	w := registrytest.NewContent("")
	for _, add := range []struct {
		ref    string
		absent []string
	}{
		{"docker.io/library/busybox:1.36", nil},
		{"quay.io/team/tool:v1", nil},
		{"registry.k8s.io/pause:3.10", []string{"s390x"}},
	} {
		if _, err := w.Image(add.ref, []string{"amd64", "arm64"}, add.absent, shared); err != nil {
			t.Fatal(err)
		}
	}
	w.Binary("kubelet", "v1.32.2", []byte("a program"))
	path, err := w.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func product(t *testing.T) (*registrytest.Product, registry.Target) {
	t.Helper()
	p := registrytest.NewProduct()
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	return p, registry.Target{Mapper: registry.Mapper{Host: strings.TrimPrefix(s.URL, "http://"), Namespace: "site"}, PlainHTTP: true}
}

// fill compares and fills.
func fill(t *testing.T, target registry.Target, b *bundle.Bundle) (*registry.Comparison, registry.FillResult, []registry.ImageStatus) {
	t.Helper()
	c, err := registry.Compare(t.Context(), target, b, b.Lock.Images, 4)
	if err != nil {
		t.Fatal(err)
	}
	done, images, err := registry.Fill(t.Context(), target, b, c, registry.Options{Parallel: 4, Narrow: true})
	if err != nil {
		t.Fatal(err)
	}
	return c, done, images
}

// settled runs again and wants nothing to be sent.
func settled(t *testing.T, p *registrytest.Product, target registry.Target, b *bundle.Bundle, want []registry.ImageStatus) {
	t.Helper()
	p.Lock()
	uploads, puts := p.Uploads, p.Puts
	p.Unlock()
	c, done, images := fill(t, target, b)
	if c.Missing() != 0 || c.Blobs != 0 || p.Uploads != uploads || p.Puts != puts || done.Images != 0 {
		t.Errorf("again: %d missing, %d blobs sent, %d manifests sent, %+v", c.Missing(), p.Uploads-uploads, p.Puts-puts, done)
	}
	for i, at := range images {
		if !at.AlreadyPresent || at.Digest != want[i].Digest {
			t.Errorf("again: %+v, before %+v", at, want[i])
		}
	}
}

func TestFill(t *testing.T) {
	b := carried(t)
	p, target := product(t)
	c, done, images := fill(t, target, b)
	if c.Missing() != 3 || done.Images != 3 || done.Blobs != c.Blobs || done.Bytes != c.Bytes || done.Mounted != p.Mounts || p.Uploads != done.Blobs {
		t.Errorf("%d missing, %d blobs, %d bytes; %+v; %d uploads, %d mounts", c.Missing(), c.Blobs, c.Bytes, done, p.Uploads, p.Mounts)
	}
	// The layer that all share, and the configs of both architectures, are one blob each.
	if done.Mounted != 6 || done.Narrowed != nil {
		t.Errorf("%+v", done)
	}
	for i, at := range images {
		repository, tag, err := target.Repository(at.Reference)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Manifest(repository, tag); got != b.Lock.Images[i].Digest || at.Digest != got || at.Narrowed() || at.AlreadyPresent ||
			at.Target != target.Host+"/site/"+at.Reference {
			t.Errorf("%s there, %+v", got, at)
		}
	}
	settled(t, p, target, b, images)
}

// However a registry refuses a mount, the blob is uploaded.
func TestRefusedMounts(t *testing.T) {
	b := carried(t)
	for _, status := range []int{202, 400, 401, 403, 404, 405, 415, 501} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			p, target := product(t)
			p.Mount = status
			_, done, images := fill(t, target, b)
			if done.Mounted != 0 || p.Mounts != 0 || p.Uploads != done.Blobs || done.Images != 3 {
				t.Errorf("%+v, %d uploads", done, p.Uploads)
			}
			settled(t, p, target, b, images)
		})
	}
}

// What an earlier bundle brought into another repository is mounted from there.
func TestMountsFromBefore(t *testing.T) {
	b := carried(t)
	p, target := product(t)
	one, err := registry.Compare(t.Context(), target, b, b.Lock.Images[:1], 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := registry.Fill(t.Context(), target, b, one, registry.Options{Parallel: 2}); err != nil {
		t.Fatal(err)
	}
	p.Forget("site/docker.io/library/busybox", "1.36") // its blobs are there still
	c, done, _ := fill(t, target, b)
	if c.Mounts != 6 || done.Mounted != 6 || done.AlreadyPresent == 0 {
		t.Errorf("%d to mount; %+v", c.Mounts, done)
	}
}

// Products refuse an index with gaps in their own ways. Each gets one without,
// always the same, and every name of the image by digest follows.
func TestSparseIndexIsNarrowed(t *testing.T) {
	b := carried(t)
	var before string
	for name, answer := range map[string]struct {
		status int
		code   string
	}{
		"distribution": {400, "MANIFEST_BLOB_UNKNOWN"},
		"unknown":      {404, "MANIFEST_UNKNOWN"},
		"blobs":        {400, "BLOB_UNKNOWN"},
		"invalid":      {400, "MANIFEST_INVALID"},
		"not found":    {404, "NOT_FOUND"},
		"unprocessed":  {422, "UNPROCESSABLE"},
	} {
		t.Run(name, func(t *testing.T) {
			p, target := product(t)
			p.Sparse, p.Code = answer.status, answer.code
			_, done, images := fill(t, target, b)
			pause := images[2]
			if !pause.Narrowed() || p.Manifest("site/registry.k8s.io/pause", "3.10") != pause.Digest || images[0].Narrowed() || images[1].Narrowed() {
				t.Fatalf("%+v", images)
			}
			if before != "" && before != pause.Digest {
				t.Errorf("%s once, and now %s", before, pause.Digest)
			}
			before = pause.Digest
			for _, arch := range []string{"amd64", "arm64"} {
				pulled(t, pause.Target, arch)
			}
			target.Digests = done.Narrowed
			got, err := target.Map("registry.k8s.io/pause@" + pause.Published)
			if want := target.Host + "/site/registry.k8s.io/pause@" + pause.Digest; err != nil || got != want {
				t.Errorf("by digest: %s, %v; want %s", got, err, want)
			}
			settled(t, p, target, b, images)
		})
	}
}

// pulled pulls one complete platform of an image.
func pulled(t *testing.T, at, arch string) {
	t.Helper()
	ref, err := name.ParseReference(at, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	img, err := remote.Image(ref, remote.WithContext(t.Context()), remote.WithPlatform(ggcr.Platform{OS: "linux", Architecture: arch}))
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil || config.Architecture != arch {
		t.Errorf("%s for %s: %+v, %v", at, arch, config, err)
	}
}

// A refusal with another cause is returned unchanged, and nothing is narrowed.
func TestOtherRefusals(t *testing.T) {
	b := carried(t)
	for _, status := range []int{401, 403, 413} {
		p, target := product(t)
		p.Sparse, p.Code = status, "DENIED"
		c, err := registry.Compare(t.Context(), target, b, b.Lock.Images, 4)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = registry.Fill(t.Context(), target, b, c, registry.Options{Parallel: 4, Narrow: true})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprint(status)) || p.Manifest("site/registry.k8s.io/pause", "3.10") != "" {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// Whoever does not ask for it gets no index but the published one.
func TestNothingIsNarrowedUnasked(t *testing.T) {
	b := carried(t)
	p, target := product(t)
	p.Sparse, p.Code = 400, "MANIFEST_BLOB_UNKNOWN"
	c, err := registry.Compare(t.Context(), target, b, b.Lock.Images, 2)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = registry.Fill(t.Context(), target, b, c, registry.Options{Parallel: 2})
	var sparse *transfer.SparseError
	if !errors.As(err, &sparse) || p.Manifest("site/registry.k8s.io/pause", "3.10") != "" {
		t.Errorf("%v", err)
	}
}

// Another image under the tag is replaced, and said; a gap under a tag is filled.
func TestCompareSees(t *testing.T) {
	b := carried(t)
	p, target := product(t)
	_, _, images := fill(t, target, b)
	put(t, target, "site/docker.io/library/busybox", "1.36", map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []any{}})
	p.Forget("site/quay.io/team/tool", b.Lock.Images[1].Platforms[1].Digest)
	c, err := registry.Compare(t.Context(), target, b, b.Lock.Images, 1)
	if err != nil {
		t.Fatal(err)
	}
	if c.Missing() != 2 || c.Images[0].Previous == "" || c.Images[0].AlreadyPresent || c.Images[1].Previous != "" || c.Images[1].AlreadyPresent || !c.Images[2].AlreadyPresent || c.Blobs != 0 {
		t.Errorf("%+v", c.Images)
	}
	p.Lock()
	uploads := p.Uploads
	p.Unlock()
	_, done, after := fill(t, target, b)
	if done.Images != 2 || p.Uploads != uploads || after[0].Digest != images[0].Digest || after[0].Previous == "" {
		t.Errorf("%+v %+v", done, after)
	}
	settled(t, p, target, b, after)
}

func put(t *testing.T, target registry.Target, repository, tag string, index any) {
	t.Helper()
	text, err := json.Marshal(index)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+target.Host+"/v2/"+repository+"/manifests/"+tag, strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/vnd.oci.image.index.v1+json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Fatal(resp.Status)
	}
}

// Broken off at any request, the next run sends the rest, and no tag names what
// is not complete.
func TestFillInterruptedAnywhere(t *testing.T) {
	b := carried(t)
	for _, sparse := range []int{0, 400} {
		for k := int32(1); ; k += 1 + k/12 { // the first ones all, later fewer
			p := registrytest.NewProduct()
			p.Sparse, p.Code = sparse, "MANIFEST_BLOB_UNKNOWN"
			ctx, cut := context.WithCancel(t.Context())
			var n atomic.Int32
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if n.Add(1) == k {
					cut()
					panic(http.ErrAbortHandler)
				}
				p.ServeHTTP(w, r)
			}))
			target := registry.Target{Mapper: registry.Mapper{Host: strings.TrimPrefix(s.URL, "http://"), Namespace: "site"}, PlainHTTP: true}
			c, err := registry.Compare(ctx, target, b, b.Lock.Images, 2)
			if err == nil {
				_, _, err = registry.Fill(ctx, target, b, c, registry.Options{Parallel: 2, Narrow: true})
			}
			cut()
			if n.Load() < k {
				s.Close()
				if err != nil {
					t.Fatal(err)
				}
				break
			}
			if err == nil {
				t.Fatalf("request %d was cut, and all is well", k)
			}
			_, _, images := fill(t, target, b)
			for _, at := range images {
				for _, arch := range []string{"amd64", "arm64"} {
					pulled(t, at.Target, arch)
				}
			}
			settled(t, p, target, b, images)
			s.Close()
		}
	}
}

// A registry that is busy now and then gets everything all the same.
func TestFillABusyRegistry(t *testing.T) {
	b := carried(t)
	p, target := product(t)
	p.Busy = 3
	_, done, images := fill(t, target, b)
	if done.Images != 3 {
		t.Errorf("%+v", done)
	}
	p.Busy = 0
	settled(t, p, target, b, images)
}

func TestLogin(t *testing.T) {
	b := carried(t)
	p, target := product(t)
	p.User, p.Password = "admin", "secret"
	if _, err := registry.Compare(t.Context(), target, b, b.Lock.Images, 2); !errors.Is(err, auth.ErrBasicCredentialNotFound) {
		t.Errorf("anonymous: %v", err)
	}
	target.Username, target.Password = "admin", "secret"
	fill(t, target, b)
}
