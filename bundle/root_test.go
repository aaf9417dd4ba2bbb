package bundle

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

func TestHeadFollowsFromTheLockAlone(t *testing.T) {
	l := pinnedLock(t)
	a, err := newHead(l, []byte("config"))
	if err != nil {
		t.Fatal(err)
	}
	m := l.Clone()
	m.Artifacts[0], m.Artifacts[1] = m.Artifacts[1], m.Artifacts[0]
	m.Sort()
	b, err := newHead(m, []byte("config"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.root.bytes, b.root.bytes) || !bytes.Equal(a.index, b.index) {
		t.Error("the same lock gives two roots")
	}
	m.Serial++
	c, err := newHead(m, []byte("config"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(a.root.bytes, c.root.bytes) {
		t.Error("another serial gives the same root")
	}
}

// The root's children are manifests and indexes only: a registry refuses an
// index with other children.
func TestRootHoldsManifestsOnly(t *testing.T) {
	h, err := newHead(pinnedLock(t), []byte("config"))
	if err != nil {
		t.Fatal(err)
	}
	var root v1.Index
	if err := json.Unmarshal(h.root.bytes, &root); err != nil {
		t.Fatal(err)
	}
	if root.ArtifactType != TypeRoot || len(root.Manifests) != 6 {
		t.Fatalf("root is %s with %d children", root.ArtifactType, len(root.Manifests))
	}
	for _, d := range root.Manifests {
		if d.MediaType != v1.MediaTypeImageManifest && d.MediaType != v1.MediaTypeImageIndex {
			t.Errorf("%s is a child of the root", d.MediaType)
		}
		if d.Annotations[annotationID] == "" {
			t.Errorf("%s has no id", d.Digest)
		}
	}
	var index v1.Index
	if err := json.Unmarshal(h.index, &index); err != nil {
		t.Fatal(err)
	}
	if len(index.Manifests) != 1 || index.Manifests[0].Digest != digest.FromBytes(h.root.bytes) {
		t.Errorf("index.json names %v", index.Manifests)
	}
}

func TestFormatBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 5 << 30: "5.0 GiB", 3 << 50: "3.0 PiB", 2 << 60: "2048.0 PiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestSpaceIsAddedUpPerFileSystem(t *testing.T) {
	dir := t.TempDir()
	all := addSpace(addSpace(nil, dir, 10), dir+"/not/there/yet", 20)
	if len(all) != 1 || all[0].Need != 30 || all[0].Free == 0 {
		t.Fatalf("%+v", all)
	}
	if err := checkSpace(all); err != nil {
		t.Error(err)
	}
	all[0].Need = 1 << 62
	err := checkSpace(all)
	if err == nil || !bytes.Contains([]byte(err.Error()), []byte(dir)) {
		t.Errorf("no error that names %s: %v", dir, err)
	}
}
