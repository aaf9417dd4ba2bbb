package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/oci"
	orasremote "oras.land/oras-go/v2/registry/remote"

	"github.com/mensylisir/kubexm/manifest"
)

// taken is a site with a bundle and the images taken out of it.
type taken struct {
	*site
	bundle string
	layout string
	images []manifest.ImagePin
}

func newTaken(t *testing.T) *taken {
	t.Helper()
	s := newSite(t, 0.02)
	x := &taken{site: s, bundle: filepath.Join(s.newFolder(t, "out"), "bundle.tar.zst"), layout: filepath.Join(s.dir, "layout")}
	s.must(t, s.build(x.bundle, filepath.Join(s.dir, "cache"))...)
	s.must(t, "bundle", "extract", "--allow-unsigned", x.bundle, "--oci", x.layout)
	x.images = s.pinned(t).Images
	return x
}

// base is the address of the upstream's registry.
func (x *taken) base(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(x.paths.Sources)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "http://")
	host, _, _ := strings.Cut(rest, "/")
	return host
}

func TestOtherToolsReadIt(t *testing.T) {
	x := newTaken(t)
	for _, p := range x.images {
		ref, err := name.ParseReference(x.base(t)+"/"+p.Reference, name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		d, err := remote.Head(ref, remote.WithContext(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		if d.Digest.String() != p.Digest {
			t.Errorf("%s is %s upstream and %s in the lock", p.Reference, d.Digest, p.Digest)
		}
	}
	t.Run("go-containerregistry", func(t *testing.T) { readWithGGCR(t, x) })
	t.Run("oras-go", func(t *testing.T) { readWithOras(t, x) })
	t.Run("skopeo", func(t *testing.T) { readWithSkopeo(t, x) })
	t.Run("oras", func(t *testing.T) { readWithOrasTool(t, x) })
	t.Run("crane", func(t *testing.T) { readWithCrane(t, x) })
	t.Run("tar", func(t *testing.T) { readWithTar(t, x) })
}

// readWithGGCR opens every image of every wanted platform and checks all of it.
func readWithGGCR(t *testing.T, x *taken) {
	l, err := layout.FromPath(x.layout)
	if err != nil {
		t.Fatal(err)
	}
	top, err := l.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	m, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Manifests) != len(x.images) {
		t.Errorf("index.json names %d images, the lock has %d", len(m.Manifests), len(x.images))
	}
	for _, p := range x.images {
		i := slices.IndexFunc(m.Manifests, func(d v1.Descriptor) bool { return d.Annotations["org.opencontainers.image.ref.name"] == p.Reference })
		if i < 0 {
			t.Errorf("%s is not named", p.Reference)
			continue
		}
		if got := m.Manifests[i].Digest.String(); got != p.Digest {
			t.Errorf("%s is %s, want %s", p.Reference, got, p.Digest)
		}
		idx, err := top.ImageIndex(m.Manifests[i].Digest)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range p.Platforms {
			h, err := v1.NewHash(q.Digest)
			if err != nil {
				t.Fatal(err)
			}
			img, err := idx.Image(h)
			if err != nil {
				t.Fatal(err)
			}
			if err := validate.Image(img); err != nil {
				t.Errorf("%s for %s: %v", p.Reference, q.Platform, err)
			}
		}
	}
}

// readWithOras resolves every image by its reference, and reads what it names.
func readWithOras(t *testing.T, x *taken) {
	store, err := oci.NewFromFS(t.Context(), os.DirFS(x.layout))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range x.images {
		d, err := store.Resolve(t.Context(), p.Reference)
		if err != nil {
			t.Errorf("%s: %v", p.Reference, err)
			continue
		}
		if d.Digest.String() != p.Digest {
			t.Errorf("%s is %s, want %s", p.Reference, d.Digest, p.Digest)
		}
		if _, err := content.FetchAll(t.Context(), store, d); err != nil {
			t.Errorf("%s: %v", p.Reference, err)
		}
	}
}

// tool runs a program and gives what it writes; without the program the test is skipped.
func (x *taken) tool(t *testing.T, args ...string) []byte {
	t.Helper()
	if _, err := exec.LookPath(args[0]); err != nil {
		t.Skipf("%s is not installed", args[0])
	}
	c := exec.CommandContext(t.Context(), args[0], args[1:]...)
	c.Env = append(os.Environ(), "HOME="+x.dir)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return out
}

// readWithSkopeo inspects every image for every wanted platform. In a layout
// skopeo finds documents of OCI's own types alone; what Docker's tools published
// it reads from a registry.
func readWithSkopeo(t *testing.T, x *taken) {
	for _, p := range x.images {
		if p.MediaType != ocispec.MediaTypeImageIndex {
			continue
		}
		at := "oci:" + x.layout + ":" + p.Reference
		if got := "sha256:" + hashOf(x.tool(t, "skopeo", "inspect", "--raw", at)); got != p.Digest {
			t.Errorf("%s is %s, want %s", p.Reference, got, p.Digest)
		}
		for _, q := range p.Platforms {
			checkPlatform(t, q.Platform, x.tool(t, "skopeo", "--override-arch", q.Platform.Arch, "inspect", at))
		}
	}
	for _, c := range x.copied(t) {
		at := "docker://" + c.at
		if got := "sha256:" + hashOf(x.tool(t, "skopeo", "inspect", "--tls-verify=false", "--raw", at)); got != c.image.Digest {
			t.Errorf("%s is %s, want %s", c.at, got, c.image.Digest)
		}
		checkPlatform(t, c.image.Platform, x.tool(t, "skopeo", "--override-arch", c.image.Platform.Arch, "inspect", "--tls-verify=false", at))
	}
}

// checkPlatform reads what skopeo says of an image.
func checkPlatform(t *testing.T, want manifest.Platform, inspected []byte) {
	t.Helper()
	var image struct{ Architecture, Os string }
	if err := json.Unmarshal(inspected, &image); err != nil {
		t.Fatal(err)
	}
	if got := image.Os + "/" + image.Architecture; got != want.String() {
		t.Errorf("an image for %s says it is for %s", want, got)
	}
}

// copied is one platform's image in a registry.
type copied struct {
	at    string
	image manifest.PlatformImage
}

// copied copies every wanted image from the layout to a registry of its own.
func (x *taken) copied(t *testing.T) []copied {
	t.Helper()
	store, err := oci.NewFromFS(t.Context(), os.DirFS(x.layout))
	if err != nil {
		t.Fatal(err)
	}
	host := emptyRegistry(t)
	var list []copied
	for i, p := range x.images {
		to, err := orasremote.NewRepository(fmt.Sprintf("%s/image-%d", host, i))
		if err != nil {
			t.Fatal(err)
		}
		to.PlainHTTP = true
		for _, q := range p.Platforms {
			o := oras.CopyOptions{}
			o.WithTargetPlatform(&ocispec.Platform{OS: q.Platform.OS, Architecture: q.Platform.Arch})
			if _, err := oras.Copy(t.Context(), store, p.Reference, to, q.Platform.Arch, o); err != nil {
				t.Fatalf("copy %s for %s: %v", p.Reference, q.Platform, err)
			}
			list = append(list, copied{at: to.Reference.Registry + "/" + to.Reference.Repository + ":" + q.Platform.Arch, image: q})
		}
	}
	return list
}

// readWithOrasTool copies every image for every wanted platform from the layout
// to a registry with the oras command. Its way of writing a place in a layout has
// no room for a registry's name: an image is asked for by digest.
func readWithOrasTool(t *testing.T, x *taken) {
	oras := pinnedTool(t, "oras", "oras.land/oras/cmd/oras", "../tools/oras/go.mod")
	host := emptyRegistry(t)
	for i, p := range x.images {
		from := x.layout + "@" + p.Digest
		if got := "sha256:" + hashOf(x.tool(t, oras, "manifest", "fetch", "--oci-layout", from)); got != p.Digest {
			t.Errorf("%s is %s, want %s", p.Reference, got, p.Digest)
		}
		for _, q := range p.Platforms {
			to := fmt.Sprintf("%s/image-%d:%s", host, i, q.Platform.Arch)
			x.tool(t, oras, "cp", "--no-tty", "--platform", q.Platform.String(), "--from-oci-layout", from, "--to-plain-http", to)
			if got := "sha256:" + hashOf(x.tool(t, oras, "manifest", "fetch", "--plain-http", to)); got != q.Digest {
				t.Errorf("%s for %s is %s, want %s", p.Reference, q.Platform, got, q.Digest)
			}
		}
	}
}

// readWithCrane checks every image, layer by layer.
func readWithCrane(t *testing.T, x *taken) {
	crane := pinnedTool(t, "crane", "github.com/google/go-containerregistry/cmd/crane", "../tools/oci/go.mod")
	for _, c := range x.copied(t) {
		if got := strings.TrimSpace(string(x.tool(t, crane, "digest", "--insecure", c.at))); got != c.image.Digest {
			t.Errorf("%s is %s, want %s", c.at, got, c.image.Digest)
		}
		x.tool(t, crane, "validate", "--insecure", "--remote", c.at)
	}
}

// pinnedTool gives the path of a command: the one that is installed, or else the
// one that testdata/tools pins, which Go's build cache keeps linked.
func pinnedTool(t *testing.T, name, from, module string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	out, err := exec.CommandContext(t.Context(), "go", "tool", "-modfile="+module, "-n", from).Output()
	if err != nil {
		t.Fatalf("build %s: %v", name, err)
	}
	return strings.TrimSpace(string(out))
}

// emptyRegistry serves a registry and gives its address.
func emptyRegistry(t *testing.T) string {
	t.Helper()
	r := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(r.Close)
	return strings.TrimPrefix(r.URL, "http://")
}

// readWithTar lists the archive as anybody can.
func readWithTar(t *testing.T, x *taken) {
	if _, err := exec.LookPath("zstd"); err != nil {
		t.Skip("zstd is not installed")
	}
	var want []string
	for _, m := range members(t, x.bundle) {
		want = append(want, m.Name)
	}
	got := strings.Fields(string(x.tool(t, "tar", "--zstd", "-tf", x.bundle)))
	if !slices.Equal(got, want) {
		t.Errorf("tar lists\n%s\nthe archive holds\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
