package installer

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	ggcr "github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/connector/sshtest"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/pki"
	"github.com/mensylisir/kubexm/steps/registryd"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// mill builds bundles of one binary and one image, out of memory.
type mill struct {
	t     *testing.T
	blobs map[string][]byte
	image []fetch.Content
	lock  *manifest.Lock
	cache *fetch.Cache
}

var amd64 = manifest.Platform{OS: "linux", Arch: "amd64"}

func newMill(t *testing.T) *mill {
	t.Helper()
	cache, err := fetch.OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &mill{t: t, blobs: map[string][]byte{}, cache: cache}
}

func (m *mill) put(role fetch.Role, mediaType string, v any) v1.Descriptor {
	m.t.Helper()
	b, ok := v.([]byte)
	if !ok {
		var err error
		if b, err = json.Marshal(v); err != nil {
			m.t.Fatal(err)
		}
	}
	d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(b), Size: int64(len(b))}
	m.blobs[d.Digest.String()] = b
	if role != "" {
		m.image = append(m.image, fetch.Content{Digest: d.Digest.String(), Size: d.Size, MediaType: mediaType, Role: role})
	}
	return d
}

// build makes the bundle of a kubelet and of an image with these layers.
func (m *mill) build(name string, since *manifest.Inventory, kubelet string, layers ...string) string {
	m.t.Helper()
	m.image = nil
	var of []v1.Descriptor
	for _, l := range layers {
		of = append(of, m.put(fetch.LayerRole, v1.MediaTypeImageLayerGzip, []byte(l)))
	}
	config := m.put(fetch.ConfigRole, v1.MediaTypeImageConfig, map[string]any{"os": "linux", "layers": layers})
	im := m.put(fetch.ManifestRole, v1.MediaTypeImageManifest, v1.Manifest{MediaType: v1.MediaTypeImageManifest, Config: config, Layers: of})
	file := m.put("", "", []byte(kubelet))
	public := []byte("kind: Cluster\n")
	m.lock = &manifest.Lock{
		APIVersion: manifest.APIVersion, Kind: manifest.LockKind, Cluster: "demo", Config: digest.FromBytes(public).String(),
		Created: time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC), Serial: 20260506120000, Platforms: []manifest.Platform{amd64},
		Sets: []manifest.Set{{Name: "v1.34.10"}},
		Artifacts: []manifest.Artifact{{ID: "binary/kubelet", Kind: manifest.Binary, Name: "kubelet", Platform: amd64, Sets: []string{"v1.34.10"},
			Address: "https://example.com/kubelet", SHA256: file.Digest.Encoded(), Size: file.Size}},
		Images: []manifest.ImagePin{{ID: "image/pause", Names: []string{"pause"}, Reference: "registry.k8s.io/pause:3.10", Sets: []string{"v1.34.10"},
			MediaType: im.MediaType, Digest: im.Digest.String(), Size: im.Size,
			Platforms: []manifest.PlatformImage{{Platform: amd64, MediaType: im.MediaType, Digest: im.Digest.String(), Size: im.Size}}}},
	}
	path := filepath.Join(m.t.TempDir(), name)
	_, err := bundle.Build(m.t.Context(), bundle.BuildRequest{Lock: m.lock, Config: public, Output: path, Cache: m.cache, Fetcher: m, Parallel: 2, Since: since})
	if err != nil {
		m.t.Fatal(err)
	}
	return path
}

func (m *mill) fetch(ctx context.Context, d string) error {
	b := m.blobs[d]
	return m.cache.Put(ctx, digest.Digest(d).Encoded(), int64(len(b)), bytes.NewReader(b))
}

func (m *mill) FetchArtifact(ctx context.Context, a manifest.Artifact) error {
	return m.fetch(ctx, "sha256:"+a.SHA256)
}

func (m *mill) FetchMember(ctx context.Context, _ manifest.Artifact, x manifest.Member) error {
	return m.fetch(ctx, "sha256:"+x.SHA256)
}

func (m *mill) ImageContent(ctx context.Context, im manifest.ImagePin) ([]fetch.Content, error) {
	return m.image, m.fetch(ctx, im.Digest)
}

func (m *mill) StreamArtifact(manifest.Artifact) fetch.Stream { return nil }

func (m *mill) UnpackArtifact(manifest.Artifact) fetch.Unpack { return nil }

func (m *mill) StreamMember(manifest.Artifact, manifest.Member) fetch.Stream { return nil }

func (m *mill) StreamContent(manifest.ImagePin, fetch.Content) fetch.Stream { return nil }

func (m *mill) FetchContent(ctx context.Context, _ manifest.ImagePin, c fetch.Content) error {
	return m.fetch(ctx, c.Digest)
}

// open opens an archive as install does.
func open(t *testing.T, path string, bases ...string) *bundle.Bundle {
	t.Helper()
	b, err := bundle.OpenPartial(t.Context(), path, bundle.Policy{AllowUnsigned: true}, bundle.Bases{Explicit: bases})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// deltaSite is one host over SSH with a registry behind it.
type deltaSite struct {
	options Options
	server  *sshtest.Server
	mill    *mill
}

// newDeltaSite gives a site whose registry listens where the config says.
func newDeltaSite(t *testing.T) *deltaSite {
	t.Helper()
	s := &deltaSite{server: sshtest.Start(t, sshtest.Config{Password: "secret"}), mill: newMill(t)}
	c := clusterOf(t, host("a", s.server, ""))
	c.Spec.RoleGroups.Registry = []string{"a"}
	s.options = options(t, c, s.server)
	srv := httptest.NewUnstartedServer(ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0))))
	_, port, err := net.SplitHostPort(srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Spec.Registry.PrivateRegistry = "registry.site:" + port
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		a := registryd.Access{Dir: filepath.Join(s.workdir().Dir, "certs", "registry")}
		ca, err := a.Authority(time.Now())
		if err != nil {
			return nil, err
		}
		leaf, err := pki.Store{Dir: a.Dir}.Leaf("server", ca, pki.Request{CommonName: "registry.site", Names: []string{"registry.site"}, Server: true}, time.Now())
		if err != nil {
			return nil, err
		}
		cert, key, err := leaf.Encode()
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(cert, key)
		return &pair, err
	}}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return s
}

func (s *deltaSite) workdir() Workdir {
	return Workdir{Dir: filepath.Join(s.options.Base, ".kubexm", "demo")}
}

// session opens a run with a bundle.
func (s *deltaSite) session(t *testing.T, b *bundle.Bundle) *Session {
	t.Helper()
	o := s.options
	o.Bundle = b
	x, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	return x
}

// fill sends to a registry what it lacks of a bundle's images.
func fill(t *testing.T, to registry.Target, from steps.Artifacts) (registry.FillResult, error) {
	t.Helper()
	c, err := registry.Compare(t.Context(), to, from, from.Images(), 1)
	if err != nil {
		return registry.FillResult{}, err
	}
	done, _, err := registry.Fill(t.Context(), to, from, c, registry.Options{})
	return done, err
}

// install does of a first install what a delta is made against: it fills the
// registry and keeps the record.
func (s *deltaSite) install(t *testing.T, path string) {
	t.Helper()
	x := s.session(t, open(t, path))
	h := x.Host(s.options.Cluster.Spec.Hosts[0])
	a := registryd.AccessOf(h)
	if _, err := a.Authority(time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Password(registryd.PushUser); err != nil {
		t.Fatal(err)
	}
	reg, err := x.registry()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fill(t, reg, h.Artifacts); err != nil {
		t.Fatal(err)
	}
	s.keep(t, x)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
}

// keep writes what the last step of an install keeps here.
func (s *deltaSite) keep(t *testing.T, x *Session) {
	t.Helper()
	a := x.applied()
	for name, text := range map[string][]byte{
		"kubexm.lock": a.Lock, "bundles.json": a.Bundles, "applied.json": []byte(`{"bundle": "` + a.Root + `", "serial": "` + a.Serial + `"}`),
	} {
		if err := os.WriteFile(s.workdir().Applied(name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *deltaSite) inventory(t *testing.T, bundles ...string) (*manifest.Inventory, []error) {
	t.Helper()
	i, passed, err := Inventory(t.Context(), s.options, bundles, bundle.Policy{AllowUnsigned: true})
	if err != nil {
		t.Fatal(err)
	}
	text, err := manifest.EncodeInventory(i)
	if err != nil {
		t.Fatal(err)
	}
	if _, ps := manifest.DecodeInventory(bytes.NewReader(text)); ps.Err() != nil {
		t.Fatalf("its own reader refuses it: %v", ps)
	}
	return i, passed
}

// TestInventory walks a site through its life: nothing there, a cluster made, a
// bundle thrown away, a host gone.
func TestInventory(t *testing.T) {
	t.Parallel()
	s := newDeltaSite(t)
	i, passed := s.inventory(t)
	if i.Registry.State != manifest.RegistryAbsent || len(i.Blobs)+len(i.Bundles)+len(passed) != 0 || i.Applied != nil {
		t.Errorf("before anything: %+v, %v", i, passed)
	}
	if _, err := os.Stat(s.workdir().Dir + "/certs/registry"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("asking made keys: %v", err)
	}
	m := i.Hosts[0]
	if m.Name != "a" || m.Arch != "amd64" || m.Kernel == "" || m.OS == "" || !slices.Equal(m.Roles, []string{"master", "registry"}) {
		t.Errorf("host %+v", m)
	}

	full := s.mill.build("demo.tar.zst", nil, "kubelet 1", "base", "one")
	i, _ = s.inventory(t, full)
	if len(i.Bundles) != 1 || len(i.Blobs) != 3 {
		t.Errorf("a bundle by its name: %+v", i)
	}
	s.install(t, full)
	i, passed = s.inventory(t)
	layer := digest.FromString("base").String()
	file := digest.FromString("kubelet 1").String()
	if len(passed) != 0 || i.Registry.State != manifest.RegistryRunning || len(i.Registry.Images) != 1 || i.Registry.Images[0].Reference != "registry.k8s.io/pause:3.10" {
		t.Errorf("registry %+v, %v", i.Registry, passed)
	}
	if len(i.Blobs) != 3 || i.Blobs[layer] != manifest.InBoth || i.Blobs[file] != manifest.InBundle || i.Applied == nil || i.Applied.Root != i.Bundles[0].Root {
		t.Errorf("blobs %v, applied %+v", i.Blobs, i.Applied)
	}

	// The archive on record is another one now, and does not count.
	if err := os.Rename(s.mill.build("other.tar.zst", nil, "kubelet 2", "base"), full); err != nil {
		t.Fatal(err)
	}
	i, passed = s.inventory(t)
	if len(passed) != 1 || !strings.Contains(passed[0].Error(), "is now bundle") || i.Blobs[layer] != manifest.InRegistry || i.Blobs[file] != "" || len(i.Bundles) != 0 {
		t.Errorf("with another archive: %v, %v", passed, i.Blobs)
	}
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
	if _, passed = s.inventory(t); len(passed) != 1 || !errors.As(passed[0], new(*MissingArchiveError)) {
		t.Errorf("without the archive: %v", passed)
	}

	s.server.Close()
	i, passed = s.inventory(t)
	if len(passed) != 3 || i.Hosts[0].Unreachable == "" || i.Registry.State != manifest.RegistrySilent || i.Registry.Reason == "" {
		t.Errorf("nobody there: %v, %+v", passed, i)
	}
}

// TestSupply completes deltas from what a site has, and refuses those that it
// cannot complete before anything is changed.
func TestSupply(t *testing.T) {
	t.Parallel()
	s := newDeltaSite(t)
	full := s.mill.build("demo.tar.zst", nil, "kubelet 1", "base", "one")
	s.install(t, full)
	site, _ := s.inventory(t)
	base := digest.FromString("base").String()
	delta := s.mill.build("delta.tar.zst", site, "kubelet 1", "base", "two")

	t.Run("from the archive on record", func(t *testing.T) {
		b := open(t, delta)
		if err := FindBases(t.Context(), b, s.options.Base, "demo"); err != nil {
			t.Fatal(err)
		}
		x := s.session(t, b)
		if err := errors.Join(b.CheckComplete(), x.AddRegistrySource(t.Context())); err != nil {
			t.Fatal(err)
		}
		kept := x.usedBundles()
		s.keep(t, x)
		if !bytes.Equal(kept, x.usedBundles()) {
			t.Error("the record changes although nothing did")
		}
		all, err := UsedBundles(s.options.Base, "demo")
		if err != nil || len(all) != 2 {
			t.Errorf("the record has %v, %v", all, err)
		}
	})
	t.Run("an archive gone, a file lacking", func(t *testing.T) {
		away := hide(t, full)
		b := open(t, delta)
		if err := FindBases(t.Context(), b, s.options.Base, "demo"); err != nil {
			t.Fatal(err)
		}
		var lack *bundle.AbsentBlobsError
		if err := b.CheckFiles(); !errors.As(err, &lack) || lack.Items[0].ID != "binary/kubelet" {
			t.Errorf("%v", err)
		}
		if err := s.session(t, b).AddRegistrySource(t.Context()); !errors.As(err, &lack) {
			t.Errorf("%v", err)
		}
		again := open(t, delta, away) // by its new name
		if err := again.CheckComplete(); err != nil {
			t.Error(err)
		}
	})
	t.Run("layers from the registry", func(t *testing.T) {
		away := hide(t, full)
		only, _ := s.inventory(t) // a delta for a site that has thrown its archive away
		b := open(t, s.mill.build("next.tar.zst", only, "kubelet 3", "base", "three"))
		if left := b.AbsentBlobs(); len(left) != 1 || left[0].Digest != base {
			t.Fatalf("absent %v", left)
		}
		x := s.session(t, b)
		if err := x.AddRegistrySource(t.Context()); err != nil {
			t.Fatal(err)
		}
		rc, _, err := b.Blob(base)
		if err != nil {
			t.Fatal(err)
		}
		defer rc.Close()
		if text, err := io.ReadAll(rc); err != nil || string(text) != "base" {
			t.Errorf("%q, %v", text, err)
		}
		h := x.Host(s.options.Cluster.Spec.Hosts[0])
		homed, ok := h.Artifacts.(registry.MountSource)
		if !ok || homed.MountRepository(base) != "registry.k8s.io/pause" {
			t.Error("the registry is not told where its own blob is")
		}
		reg, err := x.registry()
		if err != nil {
			t.Fatal(err)
		}
		if done, err := fill(t, reg, h.Artifacts); err != nil || done.Blobs != 2 {
			t.Errorf("%+v, %v", done, err)
		}
		if err := os.Rename(away, full); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a layer that the registry has lost", func(t *testing.T) {
		hide(t, full)
		lost := *site
		lost.Blobs = map[string]manifest.BlobLocation{digest.FromString("never there").String(): manifest.InRegistry}
		b := open(t, s.mill.build("lost.tar.zst", &lost, "kubelet 1", "base", "never there"))
		var lack *bundle.AbsentBlobsError
		if err := s.session(t, b).AddRegistrySource(t.Context()); !errors.As(err, &lack) || lack.Items[0].ID != "image/pause" || lack.Blobs != 1 {
			t.Errorf("%v", err)
		}
	})
	t.Run("no registry at all", func(t *testing.T) {
		hide(t, full)
		b := open(t, s.mill.build("early.tar.zst", site, "kubelet 2", "base", "two"))
		o := s.options
		o.Base, o.Bundle = t.TempDir(), b
		x, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		var lack *bundle.AbsentBlobsError
		if err := x.AddRegistrySource(t.Context()); !errors.As(err, &lack) || !errors.Is(err, registryd.ErrNone) {
			t.Errorf("%v", err)
		}
	})
}

// hide moves an archive away for the rest of a test, and gives where it is.
func hide(t *testing.T, path string) string {
	t.Helper()
	away := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.Rename(path, away); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Rename(away, path); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
	return away
}

// TestDamagedBaseNeverReachesAHost: a base is damaged exactly where the delta
// needs it. The step fails, and the host has the file that it had.
func TestDamagedBaseNeverReachesAHost(t *testing.T) {
	t.Parallel()
	m := newMill(t)
	kubelet := strings.Repeat("kubelet 1 ", 1<<16)
	full := m.build("demo.tar.zst", nil, kubelet, "base")
	root := open(t, full).Root.Digest.String()
	site := &manifest.Inventory{Cluster: "demo", Bundles: []manifest.InventoryBundle{{Root: root, File: "demo.tar.zst", Bytes: 1}},
		Blobs: map[string]manifest.BlobLocation{digest.FromString(kubelet).String(): manifest.InBundle}}
	delta := m.build("delta.tar.zst", site, kubelet, "base")
	damage(t, full, digest.FromString(kubelet).String())
	b := open(t, delta, full)
	if err := b.CheckComplete(); err != nil {
		t.Fatal(err)
	}
	step := op.Ensure("test.kubelet", []op.Resource{op.Blob{Path: "/usr/local/bin/kubelet", Need: manifest.Need{Kind: manifest.Binary, Name: "kubelet"}}})
	kase := steptest.Case{Artifacts: artifacts{bundle: b, set: "v1.34.10"}, Before: func(s *conntest.Sim) { s.AddFile("/usr/local/bin/kubelet", "the old one", 0o755) }}
	sim := kase.Sim(t)
	h := kase.NewHost(t, sim, step)
	if v, err := step.Precheck(t.Context(), h); err != nil || v != steps.Todo {
		t.Fatal(v, err)
	}
	err := step.Run(t.Context(), h)
	var damaged *archive.Error
	if !errors.As(err, &damaged) || !strings.Contains(err.Error(), full) {
		t.Errorf("%v", err)
	}
	if got := sim.Read("/usr/local/bin/kubelet"); got != "the old one" {
		t.Errorf("the host has %d bytes of another file", len(got))
	}
}

// damage flips a bit in the middle of a blob.
func damage(t *testing.T, path, d string) {
	t.Helper()
	r, err := archive.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range r.Members() {
		if m.Digest == d {
			text[m.Offset+m.Length/2] ^= 1
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("%s is not in %s", d, path)
}

// TestFindBasesNeedsNoRecord: a cluster that was never made from here.
func TestFindBasesNeedsNoRecord(t *testing.T) {
	t.Parallel()
	if all, err := UsedBundles(t.TempDir(), "demo"); err != nil || all != nil {
		t.Errorf("%v, %v", all, err)
	}
	w, err := NewWorkdir(t.TempDir(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.Applied(usedName), []byte(`[{"root": 3}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readUsed(w); err == nil {
		t.Error("a record that is none was read")
	}
}
