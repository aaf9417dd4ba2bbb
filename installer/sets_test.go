package installer

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// setMill builds a bundle of several sets, each with a kubelet and an API server's image
// of its own, and with a pause image that all of them share.
type setMill struct {
	*mill
	images map[string][]fetch.Content
}

func (m *setMill) ImageContent(ctx context.Context, im manifest.ImagePin) ([]fetch.Content, error) {
	return m.images[im.ID], m.fetch(ctx, im.Digest)
}

func (m *setMill) FetchContent(ctx context.Context, _ manifest.ImagePin, c fetch.Content) error {
	return m.fetch(ctx, c.Digest)
}

func (m *setMill) pin(id string, sets ...string) manifest.ImagePin {
	m.mill.image = nil
	layer := m.put(fetch.LayerRole, v1.MediaTypeImageLayerGzip, []byte("layer of "+id))
	config := m.put(fetch.ConfigRole, v1.MediaTypeImageConfig, map[string]any{"os": "linux", "id": id})
	im := m.put(fetch.ManifestRole, v1.MediaTypeImageManifest, v1.Manifest{MediaType: v1.MediaTypeImageManifest, Config: config, Layers: []v1.Descriptor{layer}})
	m.images[id] = m.mill.image
	name, _, _ := strings.Cut(strings.TrimPrefix(id, "image/"), ":")
	return manifest.ImagePin{ID: id, Names: []string{name}, Reference: "registry.k8s.io/" + strings.TrimPrefix(id, "image/"), Sets: sets,
		MediaType: im.MediaType, Digest: im.Digest.String(), Size: im.Size,
		Platforms: []manifest.PlatformImage{{Platform: amd64, MediaType: im.MediaType, Digest: im.Digest.String(), Size: im.Size}}}
}

func (m *setMill) build(sets ...string) string {
	m.t.Helper()
	public := []byte("kind: Cluster\n")
	m.lock = &manifest.Lock{
		APIVersion: manifest.APIVersion, Kind: manifest.LockKind, Cluster: "demo", Config: digest.FromBytes(public).String(),
		Created: time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC), Serial: 20260506120000, Platforms: []manifest.Platform{amd64},
		Images: []manifest.ImagePin{m.pin("image/pause:3.10", sets...)},
	}
	for _, set := range sets {
		file := m.put("", "", []byte("kubelet "+set))
		m.lock.Sets = append(m.lock.Sets, manifest.Set{Name: set})
		m.lock.Artifacts = append(m.lock.Artifacts, manifest.Artifact{ID: "binary/kubelet/" + set, Kind: manifest.Binary, Name: "kubelet", Platform: amd64,
			Sets: []string{set}, Address: "https://example.com/kubelet-" + set, SHA256: file.Digest.Encoded(), Size: file.Size})
		m.lock.Images = append(m.lock.Images, m.pin("image/kube-apiserver:"+set, set))
	}
	path := m.t.TempDir() + "/sets.tar.zst"
	_, err := bundle.Build(m.t.Context(), bundle.BuildRequest{Lock: m.lock, Config: public, Output: path, Cache: m.cache, Fetcher: m, Parallel: 2})
	if err != nil {
		m.t.Fatal(err)
	}
	return path
}

var kubeletNeed = manifest.Need{Kind: manifest.Binary, Name: "kubelet"}

// stage brings the kubelet to a path of its own, and says which images the run knows.
func stage(path string, images *[]string) steps.Step {
	rs := []op.Resource{op.Blob{Path: path, Need: kubeletNeed}}
	return op.Ensure("test.stage", append(rs, op.Text(path+".image", func(_ context.Context, h *steps.Host) ([]byte, error) {
		*images = nil
		for _, im := range h.Artifacts.Images() {
			*images = append(*images, im.ID)
		}
		one, err := h.Image(manifest.Need{Kind: manifest.Image, Name: "kube-apiserver"})
		return []byte(one.ID), err
	})), func(m *steps.Meta) {
		m.Needs = append(m.Needs, manifest.Need{Kind: manifest.Image, Name: "kube-apiserver"})
	})
}

// TestSeveralSetsInOneRun: the steps of a part get the programs and images of its set,
// whatever is sent to a registry is of all sets that the plan names, and a set that is
// not whole is found before anything runs.
func TestSeveralSetsInOneRun(t *testing.T) {
	t.Parallel()
	m := &setMill{mill: newMill(t), images: map[string][]fetch.Content{}}
	b := open(t, m.build("v1.33.1", "v1.34.10", "v1.35.1"))
	c := steptest.Cluster(t, steptest.Small)
	kase := steptest.Case{Cluster: c}
	var images []string
	g, err := plan.Build(plan.Pipeline{Name: "test", Modules: []plan.Module{{Name: "m", Plan: plan.Sequential(plan.Task{Name: "t", Plan: func(s plan.Scope) plan.Fragment {
		return plan.Seq(
			plan.InSet("v1.33.1", plan.On(s.Hosts(), stage("/opt/one", &images))),
			plan.InSet("v1.34.10", plan.On(s.Hosts(), stage("/opt/two", &images))),
		)
	}})}}}, plan.Scope{Want: c, Set: c.Spec.Kubernetes.Version})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.CheckBundle(b.Lock, c.Spec.Kubernetes.Version); err != nil {
		t.Fatal(err)
	}
	sim := kase.Sim(t)
	h := kase.NewHost(t, sim, stage("/opt/none", &images))
	s := sessionOf(t, c, h)
	s.Bundle = b
	s.equip(h)
	if _, err := s.Run(t.Context(), g, RunOptions{Parallel: 1}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/opt/one": "kubelet v1.33.1", "/opt/one.image": "image/kube-apiserver:v1.33.1",
		"/opt/two": "kubelet v1.34.10", "/opt/two.image": "image/kube-apiserver:v1.34.10",
	} {
		if got := sim.Read(path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	if slices.Sort(images); strings.Join(images, " ") != "image/kube-apiserver:v1.33.1 image/kube-apiserver:v1.34.10 image/pause:3.10" {
		t.Errorf("the run knows the images %q", images)
	}

	lock := *b.Lock
	lock.Artifacts = slices.DeleteFunc(slices.Clone(lock.Artifacts), func(a manifest.Artifact) bool { return slices.Contains(a.Sets, "v1.33.1") })
	if err := g.CheckBundle(&lock, c.Spec.Kubernetes.Version); err == nil || !strings.Contains(err.Error(), "binary kubelet of v1.33.1 for linux/amd64: step test.stage on node1") {
		t.Errorf("a set without a kubelet: %v", err)
	}
	if unused := plan.Unused(b.Lock, c.Spec.Kubernetes.Version, g); strings.Join(unused, " ") != "image/pause:3.10" {
		t.Errorf("unused are %q", unused)
	}
}
