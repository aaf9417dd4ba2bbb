package bundle

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/manifest"
)

func TestCompareLocks(t *testing.T) {
	file := func(name, version, sum string, size int64) manifest.Artifact {
		return manifest.Artifact{ID: "binary/" + name + "/" + version, Kind: manifest.Binary, Name: name, Version: version, Platform: linux,
			Address: "https://example.invalid/" + name, SHA256: sum, Size: size}
	}
	image := func(ref, sum string, size int64) manifest.ImagePin {
		return manifest.ImagePin{ID: "image/" + ref, Reference: ref, Digest: "sha256:" + sum, Size: 1,
			Platforms: []manifest.PlatformImage{{Platform: linux, Digest: "sha256:" + sum + "p", Size: 2, Content: size}}}
	}
	from := &Side{Lock: &manifest.Lock{
		Artifacts: []manifest.Artifact{file("same", "v1", "s", 10), file("moved", "v1", "m1", 20), file("gone", "v1", "g", 30), file("other", "v1", "o1", 40),
			file("two", "v1", "t1", 50), file("two", "v2", "t2", 60)},
		Images: []manifest.ImagePin{image("r.example/a:v1", "a1", 100), image("r.example/b:v1", "b1", 200)},
	}}
	to := &Side{Lock: &manifest.Lock{
		Artifacts: []manifest.Artifact{file("same", "v1", "s", 10), file("moved", "v2", "m2", 21), file("new", "v1", "n", 31), file("other", "v1", "o2", 41),
			file("two", "v2", "t2", 60), file("two", "v3", "t3", 70)},
		Images: []manifest.ImagePin{image("r.example/a:v2", "a2", 101), image("r.example/b:v1", "b1", 200)},
	}}
	d := Compare(from, to)
	var got []string
	for _, x := range d.Added {
		got = append(got, "+ "+x.String())
	}
	for _, x := range d.Removed {
		got = append(got, "- "+x.String())
	}
	for _, c := range d.Changed {
		got = append(got, "~ "+c.From.String()+" > "+c.To.Version)
	}
	want := []string{
		"+ binary new v1 linux/amd64", "- binary gone v1 linux/amd64", "~ binary moved v1 linux/amd64 > v2", "~ binary other v1 linux/amd64 > v1",
		"~ binary two v1 linux/amd64 > v3", "~ image r.example/a v1 linux/amd64 > v2",
	}
	if x := cmp.Diff(want, got); x != "" {
		t.Error(x)
	}
	if want := int64(21 + 31 + 41 + 70 + 1 + 2 + 101); d.Bytes != want || d.Exact || d.Same != 3 {
		t.Errorf("%d bytes, exact %v, %d the same; want %d, not exact, 3", d.Bytes, d.Exact, d.Same, want)
	}
	if d := Compare(to, to); d.Bytes != 0 || len(d.Added)+len(d.Removed)+len(d.Changed) != 0 {
		t.Errorf("a lock differs from itself: %+v", d)
	}
}

func TestCompareArchivesAndLocks(t *testing.T) {
	w := newWorld(t)
	archive := w.build(t, 2)
	lock := filepath.Join(t.TempDir(), "kubexm.lock")
	text, err := manifest.EncodeLock(w.Lock)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(lock, text, 0o600); err != nil {
		t.Fatal(err)
	}
	side := func(path string) *Side {
		s, err := ReadSide(t.Context(), path, Policy{AllowUnsigned: true})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, pair := range [][2]string{{archive, lock}, {lock, archive}, {archive, archive}, {lock, lock}} {
		d := Compare(side(pair[0]), side(pair[1]))
		if d.Bytes != 0 || len(d.Added)+len(d.Removed)+len(d.Changed) != 0 || d.Same != 3 || d.Exact != (pair[0] == archive && pair[1] == archive) {
			t.Errorf("%v: %+v", pair, d)
		}
	}
	// One file more: exactly its blob and the documents of the head that name it.
	changed := *w.Lock
	changed.Artifacts = append(changed.Artifacts[:len(changed.Artifacts):len(changed.Artifacts)], manifest.Artifact{
		ID: "file/more/v1", Kind: manifest.File, Name: "more", Version: "v1", Sets: changed.Artifacts[0].Sets,
		Address: "https://example.invalid/more.yaml", SHA256: w.Put([]byte("more")), Size: 4, Trust: manifest.FromConfig,
	})
	changed.Sort()
	w.Lock = &changed
	next := w.build(t, 2)
	d := Compare(side(archive), side(next))
	if len(d.Added) != 1 || d.Added[0].Name != "more" || !d.Exact || d.Bytes < 4 || d.Bytes > 64<<10 {
		t.Errorf("one file more: %+v", d)
	}
	if _, err := ReadSide(t.Context(), filepath.Join(t.TempDir(), "absent"), Policy{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
	odd := filepath.Join(t.TempDir(), "odd")
	if err := os.WriteFile(odd, []byte("neither"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadSide(t.Context(), odd, Policy{}); err == nil || !strings.Contains(err.Error(), "not a bundle archive") {
		t.Errorf("neither: %v", err)
	}
}

func TestDiffIsJSONWithoutNulls(t *testing.T) {
	text, err := json.Marshal(Compare(&Side{Lock: &manifest.Lock{}}, &Side{Lock: &manifest.Lock{}}))
	if err != nil || strings.Contains(string(text), "null") {
		t.Errorf("%s %v", text, err)
	}
}
