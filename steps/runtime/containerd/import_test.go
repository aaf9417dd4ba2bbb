package containerd_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry/registrytest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/runtime/containerd"
	"github.com/mensylisir/kubexm/steps/steptest"
)

const noRegistry = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: node1, address: 192.0.2.11}
    - {name: node2, address: 192.0.2.12}
  ssh: {user: root, password: secret}
  roleGroups: {master: [node1], worker: [node2]}
  kubernetes: {version: v1.34.10}
  etcd: {type: kubeadm}
  network: {plugin: flannel}
  registry: {type: none}
`

// shared is a layer that all images of the bundle have.
var shared = []byte(strings.Repeat("shared ", 9<<10))

const tool = "docker.io/library/tool:1"

// carried are the images that the bundle has, by their names in the lock.
var carried = map[string]string{"pause": "registry.k8s.io/pause:3.10", "kube-apiserver": "registry.k8s.io/kube-apiserver:v1", tool: tool}

// full gives a bundle of indexes for two platforms, with a gap where an amd64
// machine could run what is not there.
func full(t *testing.T, w *registrytest.Content, bases ...string) (path string, b *bundle.Bundle) {
	t.Helper()
	path, err := w.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if b, err = bundle.Open(t.Context(), path, bundle.Policy{AllowUnsigned: true}, bases...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return path, b
}

// world has these images; more are layers that one of them has beside.
func world(t *testing.T, more ...[]byte) *registrytest.Content {
	t.Helper()
	w := registrytest.NewContent("")
	for name, ref := range carried {
		layers := [][]byte{shared}
		if ref == tool {
			layers = append(layers, more...)
		}
		if _, err := w.Image(ref, []string{"amd64", "arm64"}, []string{"386", "s390x"}, layers...); err != nil {
			t.Fatal(err)
		}
		w.Lock.Images[len(w.Lock.Images)-1].Names = []string{name}
	}
	return w
}

// held is a bundle as a run hands it to steps.
type held struct {
	steptest.Artifacts
	*bundle.Bundle
	blob func(digest string) (io.ReadCloser, int64, error) // nil: the bundle's
}

func (a held) Images() []manifest.ImagePin                        { return a.Lock.Images }
func (a held) Tree(im manifest.ImagePin) ([]v1.Descriptor, error) { return a.Bundle.Tree(im) }
func (a held) Lookup(n manifest.Need, p manifest.Platform) (manifest.Blob, error) {
	return a.Artifacts.Lookup(n, p)
}

func (a held) Blob(d string) (io.ReadCloser, int64, error) {
	if a.blob != nil {
		return a.blob(d)
	}
	return a.Bundle.Blob(d)
}

// node is a host of the cluster with a runtime, and what is imported there.
type node struct {
	kase steptest.Case
	step steps.Step
	sim  *conntest.Sim
	sent [][]string // of each import, the files of its tar
}

func newNode(t *testing.T, c *manifest.Cluster, host int, a steps.Artifacts) *node {
	t.Helper()
	n := &node{step: containerd.Import(c, nil)}
	n.kase = steptest.Case{Cluster: c, Host: c.Spec.Hosts[host], Artifacts: a, Before: func(s *conntest.Sim) {
		n.sent = nil
		steptest.NewKube(c).On(s, c.Spec.Hosts[host].Name)
		for _, program := range []string{"ctr", "crictl", "containerd"} {
			s.AddFile("/usr/local/bin/"+program, "a program", 0o755)
		}
		s.AddUnit("containerd.service", "[Service]\nExecStart=/usr/local/bin/containerd\n[Install]\nWantedBy=multi-user.target\n", true, true)
		s.Handle(func(c connector.Cmd) bool { return slices.Contains(c.Argv, "import") && c.Stdin != nil }, func(_ connector.Cmd, stdin []byte) (connector.Result, bool) {
			n.sent = append(n.sent, listed(t, stdin))
			return connector.Result{}, false
		})
	}}
	n.sim = n.kase.Sim(t)
	return n
}

func listed(t *testing.T, text []byte) []string {
	t.Helper()
	var out []string
	for r := tar.NewReader(bytes.NewReader(text)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, h.Name)
	}
}

func (n *node) run(t *testing.T) error {
	return n.step.Run(t.Context(), n.kase.NewHost(t, n.sim, n.step))
}

// breaks runs the step with the wire about to break, and reports whether it did.
func (n *node) breaks(t *testing.T, f conntest.Fault) bool {
	t.Helper()
	h := n.kase.NewHost(t, n.sim, n.step)
	n.sim.Break(f)
	defer n.sim.Mend()
	return n.step.Run(t.Context(), h) != nil
}

func (n *node) done(t *testing.T) bool {
	t.Helper()
	v, err := n.step.Precheck(t.Context(), n.kase.NewHost(t, n.sim, n.step))
	if err != nil {
		t.Fatal(err)
	}
	return v == steps.Done
}

// has gives what the node says of a name: its digest, and whether it is pinned.
func (n *node) has(ref string) string {
	return n.sim.Read(steptest.ImageDir + "/" + strings.NewReplacer("/", "_", ":", "_").Replace(ref))
}

// holds wants images whole, under both of their names.
func (n *node) holds(t *testing.T, b *bundle.Bundle, refs ...string) {
	t.Helper()
	for _, im := range b.Lock.Images {
		base, _, _ := strings.Cut(im.Reference, ":")
		byTag, byDigest := im.Reference+" "+im.Digest+" pinned", base+"@"+im.Digest+" "+im.Digest
		if !slices.Contains(refs, im.Reference) {
			byTag, byDigest = "", ""
		}
		if n.has(im.Reference) != byTag || n.has(base+"@"+im.Digest) != byDigest {
			t.Errorf("%s is %q and %q", im.Reference, n.has(im.Reference), n.has(base+"@"+im.Digest))
		}
		if byTag != "" && n.sim.Read("/var/lib/containerd/snapshots/"+strings.ReplaceAll(im.Digest, ":", "_")) != "unpacked" {
			t.Errorf("%s is not unpacked", im.Reference)
		}
	}
}

func blobFile(d digest.Digest) string { return "blobs/sha256/" + d.Encoded() }

func TestImportKeepsItsLaws(t *testing.T) {
	_, b := full(t, world(t))
	n := newNode(t, steptest.Cluster(t, noRegistry), 0, held{Bundle: b})
	steptest.Do(t, n.kase, n.step, false)
}

// TestImportOfTheBundlesImages: a master gets every image and a worker all but
// the control plane's, for its platform alone; what images share goes once.
func TestImportOfTheBundlesImages(t *testing.T) {
	_, b := full(t, world(t))
	c := steptest.Cluster(t, noRegistry)
	for host, refs := range [][]string{{carried["pause"], carried["kube-apiserver"], tool}, {carried["pause"], tool}} {
		n := newNode(t, c, host, held{Bundle: b})
		if err := n.run(t); err != nil {
			t.Fatal(err)
		}
		n.holds(t, b, refs...)
		all := slices.Concat(n.sent...)
		for _, im := range b.Lock.Images {
			if slices.Contains(all, blobFile(digest.Digest(im.Platforms[1].Digest))) { // arm64
				t.Errorf("%s of another platform was sent", im.Reference)
			}
		}
		once := map[string]int{}
		for _, name := range all {
			once[name]++
		}
		if len(n.sent) != len(refs) || once[blobFile(digest.FromBytes(shared))] != 1 {
			t.Errorf("%d imports, the shared layer %d times", len(n.sent), once[blobFile(digest.FromBytes(shared))])
		}
	}
}

// TestImportOfALaterBundle: what the node holds is not sent again, and what is
// another image than the bundle's is exchanged.
func TestImportOfALaterBundle(t *testing.T) {
	c := steptest.Cluster(t, noRegistry)
	_, first := full(t, world(t))
	n := newNode(t, c, 0, held{Bundle: first})
	if err := n.run(t); err != nil {
		t.Fatal(err)
	}
	_, second := full(t, world(t, []byte("a new layer")))
	n.kase.Artifacts, n.sent = held{Bundle: second}, nil
	if n.done(t) {
		t.Fatal("another image is taken for the bundle's")
	}
	if err := n.run(t); err != nil {
		t.Fatal(err)
	}
	n.holds(t, second, carried["pause"], carried["kube-apiserver"], tool)
	if len(n.sent) != 1 || slices.Contains(n.sent[0], blobFile(digest.FromBytes(shared))) || !slices.Contains(n.sent[0], blobFile(digest.FromString("a new layer"))) {
		t.Errorf("sent %v", n.sent)
	}
}

// TestImportIntoAStoreThatDiscardsLayers: a runtime may keep what it unpacked alone.
func TestImportIntoAStoreThatDiscardsLayers(t *testing.T) {
	c := steptest.Cluster(t, noRegistry)
	_, first := full(t, world(t))
	n := newNode(t, c, 0, held{Bundle: first})
	if err := n.run(t); err != nil {
		t.Fatal(err)
	}
	n.sim.RemoveAll(steptest.ContentDir + "/" + digest.FromBytes(shared).Encoded())
	_, second := full(t, world(t, []byte("a new layer")))
	n.kase.Artifacts, n.sent = held{Bundle: second}, nil
	if err := n.run(t); err != nil {
		t.Fatal(err)
	}
	n.holds(t, second, carried["pause"], carried["kube-apiserver"], tool)
	if len(n.sent) != 1 || !slices.Contains(n.sent[0], blobFile(digest.FromBytes(shared))) {
		t.Errorf("sent %v", n.sent)
	}
}

// TestAnInterruptedImportIsResumed: broken at any command, the next run ends with all images, and
// sends none again that was pinned.
func TestAnInterruptedImportIsResumed(t *testing.T) {
	_, b := full(t, world(t))
	c := steptest.Cluster(t, noRegistry)
	places := 0
	for at := 1; ; at++ {
		n := newNode(t, c, 0, held{Bundle: b})
		broke := n.breaks(t, conntest.Fault{At: at, After: at%2 == 0, Stay: true})
		pinned := 0
		for _, im := range b.Lock.Images {
			if strings.HasSuffix(n.has(im.Reference), " pinned") {
				pinned++
			}
		}
		if n.sent = nil; !n.done(t) {
			if err := n.run(t); err != nil {
				t.Fatalf("after command %d: %v", at, err)
			}
		}
		n.holds(t, b, carried["pause"], carried["kube-apiserver"], tool)
		if len(n.sent) != len(b.Lock.Images)-pinned {
			t.Errorf("after command %d, %d of %d were there, and %d were sent", at, pinned, len(b.Lock.Images), len(n.sent))
		}
		if !broke {
			break
		}
		places++
	}
	if places < 3*len(b.Lock.Images) {
		t.Errorf("%d places to break at", places)
	}
}

// TestImportOutlastsThePower: as TestImagesOutlastThePower, of images that are imported.
func TestImportOutlastsThePower(t *testing.T) {
	_, b := full(t, world(t))
	c := steptest.Cluster(t, noRegistry)
	for at := 1; ; at++ {
		n := newNode(t, c, 0, held{Bundle: b})
		n.sim.KeepDisk(steptest.ImageDir, steptest.ContentDir)
		broke := n.breaks(t, conntest.Fault{At: at, After: true, Stay: true})
		n.sim.Crash(newest, all)
		if !n.done(t) {
			if err := n.run(t); err != nil {
				t.Fatalf("after command %d: %v", at, err)
			}
		}
		n.holds(t, b, carried["pause"], carried["kube-apiserver"], tool)
		if !broke {
			return
		}
	}
}

// TestImportOfADamagedBlob: whatever a blob's bytes are taken for on the way, the node
// has no image of them, and the next run with good ones ends well.
func TestImportOfADamagedBlob(t *testing.T) {
	_, b := full(t, world(t))
	c := steptest.Cluster(t, noRegistry)
	im := b.Lock.Images[0] // which is sent first
	tree, err := b.Tree(manifest.ImagePin{Reference: im.Reference, MediaType: im.Platforms[0].MediaType, Digest: im.Platforms[0].Digest, Size: im.Platforms[0].Size})
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range tree {
		n := newNode(t, c, 0, held{Bundle: b, blob: func(d string) (io.ReadCloser, int64, error) {
			rc, size, err := b.Blob(d)
			if err != nil || d != bad.Digest.String() {
				return rc, size, err
			}
			text, err := io.ReadAll(rc)
			text[len(text)/2] ^= 1
			return io.NopCloser(bytes.NewReader(text)), size, errors.Join(err, rc.Close())
		}})
		if err := n.run(t); err == nil || !strings.Contains(err.Error(), im.Reference) || n.done(t) || strings.Contains(n.has(im.Reference), "pinned") {
			t.Errorf("%s: %v; %q", bad.MediaType, err, n.has(im.Reference))
		}
		n.kase.Artifacts = held{Bundle: b}
		if err := n.run(t); err != nil || !n.done(t) {
			t.Errorf("%s: again: %v", bad.MediaType, err)
		}
		n.holds(t, b, carried["pause"], carried["kube-apiserver"], tool)
	}
}

// TestImportFromADelta: what the delta leaves out comes from its base.
func TestImportFromADelta(t *testing.T) {
	w := world(t)
	base, whole := full(t, w)
	if _, err := w.Image("docker.io/library/more:1", []string{"amd64", "arm64"}, nil, shared); err != nil {
		t.Fatal(err)
	}
	w.Since = &manifest.Inventory{Cluster: "demo", Bundles: []manifest.InventoryBundle{{Root: whole.Root.Digest.String(), File: "demo.tar.zst", Bytes: 1}},
		Blobs: map[string]manifest.BlobLocation{digest.FromBytes(shared).String(): manifest.InBundle}}
	_, delta := full(t, w, base)
	if blobs, _ := delta.Absent(); blobs != 0 || delta.Delta == nil {
		t.Fatalf("no delta with a base: %d blobs are absent", blobs)
	}
	n := newNode(t, steptest.Cluster(t, noRegistry), 1, held{Bundle: delta})
	if err := n.run(t); err != nil {
		t.Fatal(err)
	}
	n.holds(t, delta, carried["pause"], tool, "docker.io/library/more:1")
}

// TestImportWithAnOldRuntime: one that can import all platforms of an image or its
// own choice of them is refused before anything is sent.
func TestImportWithAnOldRuntime(t *testing.T) {
	_, b := full(t, world(t))
	n := newNode(t, steptest.Cluster(t, noRegistry), 0, held{Bundle: b})
	n.sim.Handle(func(c connector.Cmd) bool { return slices.Contains(c.Argv, "--help") }, func(connector.Cmd, []byte) (connector.Result, bool) {
		return connector.Result{Stdout: []byte("OPTIONS:\n   --all-platforms  imports content for all platforms, false by default\n")}, true
	})
	if err := n.run(t); err == nil || !strings.Contains(strings.Join(steps.Advice(err), " "), "spec.registry.type") || len(n.sent) > 0 {
		t.Errorf("%v, %d imports", err, len(n.sent))
	}
}
