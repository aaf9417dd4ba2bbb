package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/bundle/delta"
	"github.com/mensylisir/kubexm/manifest"
)

// holding is the inventory of a site that has kept these archives.
func holding(t *testing.T, archives ...string) *manifest.Inventory {
	t.Helper()
	i := &manifest.Inventory{Cluster: "demo", Blobs: map[string]manifest.BlobLocation{}, Registry: manifest.InventoryRegistry{State: manifest.RegistryAbsent}}
	for _, path := range archives {
		b, err := OpenPartial(t.Context(), path, anyone, Bases{})
		if err != nil {
			t.Fatal(err)
		}
		blobs, err := b.Payload()
		if err := errors.Join(err, b.Close()); err != nil {
			t.Fatal(err)
		}
		for _, x := range blobs {
			i.Blobs[x.Digest] = manifest.InBundle
		}
		i.Bundles = append(i.Bundles, manifest.InventoryBundle{Root: b.Root.Digest.String(), File: filepath.Base(path), Bytes: b.Size()})
	}
	return i
}

func (w *world) delta(t *testing.T, since *manifest.Inventory, o archive.VolumeOptions) *BuildResult {
	t.Helper()
	path := filepath.Join(t.TempDir(), "delta.tar.zst")
	b, err := Build(t.Context(), BuildRequest{Lock: w.Lock, Config: w.Config, Output: path, Cache: w.Cache, Fetcher: w, Parallel: 2, Since: since, Volumes: o})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestDelta builds a delta and completes it with its base.
func TestDelta(t *testing.T) {
	old := newWorld(t)
	base := old.build(t, 2)
	w := old.newer(t, 1<<20)
	site := holding(t, base)
	d := w.delta(t, site, archive.VolumeOptions{})
	for _, name := range w.Fetched { // from here on w has a cache that holds the rest, too
		if _, ok := site.Blobs["sha256:"+name]; ok {
			t.Errorf("fetched %s, which the site has", name)
		}
	}
	full := w.build(t, 2)
	if again := w.delta(t, site, archive.VolumeOptions{}); !bytes.Equal(readFile(t, d.Path), readFile(t, again.Path)) {
		t.Error("two deltas of one lock and one inventory differ")
	}
	if want := (delta.Savings{Blobs: 2, Bytes: 1<<20 + 1<<19, AllBlobs: 5, AllBytes: 1<<20 + 1<<19 + 5<<20 + 300<<10}); *d.Delta != want {
		t.Errorf("saved %+v, want %+v", *d.Delta, want)
	}
	lines := []byte("{\"a\":1}\n")
	for _, path := range []string{full, d.Path} { // one signature is for both
		if err := archive.WriteSignatures(path, lines); err != nil {
			t.Fatal(err)
		}
	}
	policy := Policy{Verifier: verdict{}}
	b, err := Verify(t.Context(), d.Path, policy, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, size := b.Absent(); n != 3 || size != 5<<20+300<<10 || b.Delta == nil || b.Close() != nil {
		t.Errorf("verified alone: %d blobs, %d bytes absent, %+v", n, size, b.Delta)
	}
	whole, err := Verify(t.Context(), d.Path, policy, 2, nil, base)
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	f, err := Open(t.Context(), full, policy)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if whole.Root.Digest != f.Root.Digest || whole.CheckComplete() != nil || f.Delta != nil {
		t.Errorf("the delta's root is %s, the whole bundle's %s", whole.Root.Digest, f.Root.Digest)
	}
	var layouts [2]string
	for i, x := range []*Bundle{f, whole} {
		layouts[i] = filepath.Join(t.TempDir(), "layout")
		if _, err := x.ExtractLayout(t.Context(), layouts[i], ExtractOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	sameTree(t, layouts[0], layouts[1])
	to := filepath.Join(t.TempDir(), "full.tar.zst")
	done, err := Complete(t.Context(), CompleteRequest{Delta: d.Path, Policy: Policy{AllowUnsigned: true}, Bases: []string{base}, Output: to, Parallel: 2})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(readFile(t, to), readFile(t, full)) || done.Root != d.Root {
		t.Error("completed to other bytes than the whole build's")
	}
	if _, err := Complete(t.Context(), CompleteRequest{Delta: full, Policy: Policy{AllowUnsigned: true}, Bases: []string{base}, Output: to + "2"}); !errors.Is(err, ErrNotDelta) {
		t.Errorf("a whole bundle completed: %v", err)
	}
}

func sameTree(t *testing.T, a, b string) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(a, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		n++
		if !bytes.Equal(readFile(t, path), readFile(t, b+strings.TrimPrefix(path, a))) {
			t.Errorf("%s differs", path)
		}
		return nil
	})
	if err != nil || n < 5 {
		t.Fatal(n, err)
	}
}

// TestDeltaOfDelta: what a site keeps may be deltas themselves; and a delta may
// travel in volumes.
func TestDeltaOfDelta(t *testing.T) {
	old := newWorld(t)
	base := old.build(t, 2)
	second := old.newer(t, 1<<20)
	d := second.delta(t, holding(t, base), archive.VolumeOptions{VolumeSize: 1 << 20})
	third := second.newer(t, 1<<18)
	third.Image = append(third.Image, second.Image[4])
	site := holding(t, base, d.Path)
	e := third.delta(t, site, archive.VolumeOptions{})
	b, err := Open(t.Context(), e.Path, anyone, base, d.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	_, err = Open(t.Context(), e.Path, anyone, d.Path)
	var lack *AbsentBlobsError
	if !errors.As(err, &lack) || len(lack.Used) != 1 || len(lack.Items) != 1 || lack.Items[0].ID != "binary/runc" {
		t.Errorf("with the newer base alone: %v", err)
	}
}

func TestDeltaRefusesAWrongBase(t *testing.T) {
	old := newWorld(t)
	base := old.build(t, 2)
	w := old.newer(t, 1<<18)
	site := holding(t, base)
	d := w.delta(t, site, archive.VolumeOptions{})
	other := old.newer(t, 1<<10)
	wrong := other.build(t, 2)

	_, err := Open(t.Context(), d.Path, anyone, wrong)
	var refused *delta.BaseError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), site.Bundles[0].Root) || !strings.Contains(err.Error(), string(refused.Root)) || refused.Root == "" {
		t.Errorf("a wrong base: %v", err)
	}
	b, err := OpenPartial(t.Context(), d.Path, anyone, Bases{Known: []string{wrong, "absent.tar.zst"}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for what, err := range map[string]error{
		"whole": b.CheckComplete(), "files": b.CheckFiles(), "open": second(Open(t.Context(), d.Path, anyone)),
		"extract":     second(b.ExtractLayout(t.Context(), filepath.Join(t.TempDir(), "x"), ExtractOptions{})),
		"files of it": second(b.ExtractFiles(t.Context(), filepath.Join(t.TempDir(), "x"), ExtractOptions{Names: []string{"runc"}})),
		"image":       second(b.ExtractImages(t.Context(), filepath.Join(t.TempDir(), "x"), ExtractOptions{})),
	} {
		var lack *AbsentBlobsError
		if !errors.As(err, &lack) || len(lack.Items) == 0 || !strings.Contains(err.Error(), site.Bundles[0].Root) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n, err := b.ExtractFiles(t.Context(), filepath.Join(t.TempDir(), "x"), ExtractOptions{Names: []string{"kubelet"}}); n != 1 || err != nil {
		t.Errorf("what the delta holds was not extracted: %v", err)
	}
	if err := b.CheckComplete(); !strings.Contains(err.Error(), "absent.tar.zst") || !strings.Contains(err.Error(), "image/pause") || !strings.Contains(err.Error(), "binary/runc") {
		t.Errorf("says too little: %v", err)
	}
	site.Cluster = "prod"
	_, err = Build(t.Context(), BuildRequest{Lock: w.Lock, Config: w.Config, Output: filepath.Join(t.TempDir(), "x"), Cache: w.Cache, Fetcher: w, Since: site})
	var cluster *delta.ClusterError
	if !errors.As(err, &cluster) {
		t.Errorf("another cluster's inventory: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

// TestDeltaOddOnes makes archives that no build makes.
func TestDeltaOddOnes(t *testing.T) {
	w := newWorld(t)
	base := w.build(t, 2)
	site := holding(t, base)
	layer, file := w.Image[3].Digest, "sha256:"+w.Lock.Artifacts[0].SHA256
	as := func(d *delta.Delta, drop ...string) func(*world, *head, *[]archive.Blob) {
		return func(_ *world, h *head, blobs *[]archive.Blob) {
			var err error
			if h.index, err = indexOf(h.root.descriptor, d); err != nil {
				panic(err)
			}
			for _, x := range drop {
				*blobs = dropBlob(*blobs, x)
			}
		}
	}
	good := delta.For(site)
	for name, c := range map[string]struct {
		edit func(*world, *head, *[]archive.Blob)
		want string
	}{
		"good":                           {as(good, layer, file), ""},
		"nothing left out":               {as(good), ""},
		"no annotation":                  {as(nil, layer, file), "is missing"},
		"another base":                   {as(&delta.Delta{Cluster: "demo", Bases: []digest.Digest{"sha256:" + digest.Digest(hexB)}, Held: good.Held}, layer), "which is not a base of delta"},
		"no base":                        {as(&delta.Delta{Cluster: "demo", Held: good.Held}, layer), "a registry only, without a bundle"},
		"a base that is no digest":       {as(&delta.Delta{Cluster: "demo", Bases: []digest.Digest{"sha256:x"}, Held: good.Held}, layer), "for the base of a delta"},
		"a held list that is no digest":  {as(&delta.Delta{Cluster: "demo", Held: "x"}, layer), "for the base of a delta"},
		"without a manifest of an image": {as(good, w.Image[1].Digest), "is pinned by the lock but missing in the bundle"},
		"without a config of an image":   {as(good, w.Image[2].Digest), "is missing"},
		"without the manifest of a binary": {func(w *world, h *head, blobs *[]archive.Blob) {
			as(good, h.artifacts[0].descriptor.Digest.String())(w, h, blobs)
		}, "is missing"},
		"with a blob too many": {func(w *world, h *head, blobs *[]archive.Blob) {
			as(good, layer)(w, h, blobs)
			*blobs = append(*blobs, archive.Blob{Digest: "sha256:" + w.Put([]byte("odd")), Size: 3})
		}, "is not referenced by anything"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := Open(t.Context(), w.write(t, c.edit), anyone, base)
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if err := b.verifySupplied(t.Context(), 2, nil); err != nil {
					t.Error(err)
				}
				b.Close()
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// TestDeltaWithADamagedBase: the damage is in a blob that the delta needs, and reading it
// is an error.
func TestDeltaWithADamagedBase(t *testing.T) {
	old := newWorld(t)
	base := old.build(t, 2)
	w := old.newer(t, 1<<18)
	d := w.delta(t, holding(t, base), archive.VolumeOptions{})
	damage(t, base, old.Image[3].Digest)
	if _, err := Verify(t.Context(), d.Path, anyone, 2, nil); err != nil {
		t.Errorf("the delta itself is whole: %v", err)
	}
	if _, err := Verify(t.Context(), d.Path, anyone, 2, nil, base); !errors.Is(err, archive.ErrDigest) || !strings.Contains(err.Error(), base) {
		t.Errorf("verify: %v", err)
	}
	to := filepath.Join(t.TempDir(), "full.tar.zst")
	if _, err := Complete(t.Context(), CompleteRequest{Delta: d.Path, Policy: Policy{AllowUnsigned: true}, Bases: []string{base}, Output: to}); !errors.Is(err, archive.ErrDigest) {
		t.Errorf("complete: %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(to)); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// damage flips a bit in the middle of a stored blob.
func damage(t *testing.T, path, d string) {
	t.Helper()
	r, err := archive.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	for _, m := range r.Members() {
		if m.Digest == d {
			text := readFile(t, path)
			text[m.Offset+m.Length/2] ^= 1
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("%s is not in %s", d, path)
}

// TestDeltaFromARegistry: a source that is not an archive supplies layers, whose content is
// compared with their digests.
func TestDeltaFromARegistry(t *testing.T) {
	old := newWorld(t)
	base := old.build(t, 2)
	w := old.newer(t, 1<<18)
	site := holding(t, base)
	layer := old.Image[3].Digest
	site.Bundles, site.Applied = nil, &manifest.AppliedBundle{Root: site.Bundles[0].Root}
	for d := range site.Blobs { // the archive is gone; the registry has all of it, and a file has no use there
		site.Blobs[d] = manifest.InRegistry
	}
	d := w.delta(t, site, archive.VolumeOptions{})
	b, err := OpenPartial(t.Context(), d.Path, anyone, Bases{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.CheckFiles(); err != nil {
		t.Errorf("files are not in the delta: %v", err)
	}
	if left := b.AbsentBlobs(); len(left) != 1 || left[0].Digest != layer {
		t.Fatalf("absent: %v", left)
	}
	content := w.Blobs[hexOf(layer)]
	b.AddSource("the site's registry", map[string]bool{layer: true}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	})
	if err := b.CheckComplete(); err != nil {
		t.Fatal(err)
	}
	good := content
	for what, bad := range map[string][]byte{
		"flipped": append(slices.Clone(good[:len(good)-1]), good[len(good)-1]^1), "short": good[:len(good)-1], "long": append(slices.Clone(good), 0), "right": good,
	} {
		content = bad
		rc, n, err := b.Blob(layer)
		if err != nil || n != int64(len(good)) {
			t.Fatal(n, err)
		}
		_, err = io.Copy(io.Discard, rc)
		if what == "right" && err != nil || what != "right" && (!errors.Is(err, archive.ErrDigest) || !strings.Contains(err.Error(), "the site's registry")) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestDeltaCostsLittle holds a delta to the bytes that the site lacks.
func TestDeltaCostsLittle(t *testing.T) {
	old := newWorld(t)
	base := old.build(t, 2)
	w := old.newer(t, 40<<20)
	d := w.delta(t, holding(t, base), archive.VolumeOptions{})
	ratio := float64(d.Bytes) / float64(d.Delta.Bytes)
	t.Logf("delta %d bytes, the site lacks %d: %.4f", d.Bytes, d.Delta.Bytes, ratio)
	fmt.Fprintf(t.Output(), "delta/lacking %.4f\n", ratio)
	if d.Delta.Bytes < 50<<20 || ratio > 1.01 {
		t.Errorf("%.4f times what the site lacks", ratio)
	}
}

// TestVerifyReportsBytesRead: the bytes reported to progress equal DataBytes, including
// compressed blobs and a base.
func TestVerifyReportsBytesRead(t *testing.T) {
	old := newWorld(t)
	base := old.build(t, 2)
	w := old.newer(t, 1<<18)
	d := w.delta(t, holding(t, base), archive.VolumeOptions{})
	for name, c := range map[string]struct {
		path  string
		bases []string
	}{"whole": {path: base}, "a delta alone": {path: d.Path}, "with its base": {d.Path, []string{base}}} {
		t.Run(name, func(t *testing.T) {
			var read atomic.Int64
			b, err := Verify(t.Context(), c.path, anyone, 2, func(n int64) { read.Add(n) }, c.bases...)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			if want := b.DataBytes(); read.Load() != want {
				t.Errorf("read %d bytes, foreseen were %d", read.Load(), want)
			}
		})
	}
}
