package manifest

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var updateInventory = flag.Bool("update-inventory", false, "rewrite testdata/inventory.json and inventory-problems.txt")

// sampleInventory has a value in every field.
func sampleInventory() *Inventory {
	taken := time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC)
	d := func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
	return &Inventory{
		APIVersion: APIVersion, Kind: InventoryKind, Cluster: "demo", Taken: &taken,
		Applied:  &AppliedBundle{Root: d("a"), Serial: "20260506120000"},
		Bundles:  []InventoryBundle{{Root: d("b"), File: "new.tar.zst", Bytes: 10, Delta: true}, {Root: d("a"), File: "demo.tar.zst", Bytes: 3}},
		Registry: InventoryRegistry{Host: "registry.site:5000", State: RegistryRunning, Images: []InventoryImage{{Reference: "registry.k8s.io/pause:3.10", Digest: d("c")}}},
		Blobs:    map[string]BlobLocation{d("d"): InBundle, d("1"): InBoth, d("e"): InRegistry},
		Hosts: []InventoryMachine{
			{Name: "w2", Unreachable: "no route"},
			{Name: "w1", Roles: []string{"worker"}, Unreachable: "no route"},
			{Name: "m1", Roles: []string{"master"}, OS: "debian", Version: "12", Arch: "amd64", Kernel: "6.1", Components: map[string]string{"kubelet": "v1.32.2"}},
		},
	}
}

func TestInventoryHasOneForm(t *testing.T) {
	text, err := EncodeInventory(sampleInventory())
	if err != nil {
		t.Fatal(err)
	}
	if *updateInventory {
		if err := os.WriteFile("testdata/inventory.json", text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/inventory.json")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(text)); d != "" {
		t.Error(d)
	}
	i, ps := DecodeInventory(bytes.NewReader(text))
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	again, err := EncodeInventory(i)
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("encoded again to other bytes: %v", err)
	}
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	if d := cmp.Diff([]string{"sha256:" + a, "sha256:" + b}, i.Roots()); d != "" {
		t.Error(d)
	}
	sum := i.BlobsDigest()
	i.Taken, i.Hosts = nil, nil
	if i.BlobsDigest() != sum {
		t.Error("more than the blobs is in their digest")
	}
	i.Blobs["sha256:"+a] = InBundle
	if i.BlobsDigest() == sum {
		t.Error("a blob more is not in the digest")
	}
}

// TestInventoryMistakes: all problems of a document are in one report, with
// its place.
func TestInventoryMistakes(t *testing.T) {
	text, err := os.ReadFile("testdata/inventory-mistakes.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for n, doc := range strings.Split(string(text), "---\n") {
		i, ps := DecodeInventory(strings.NewReader(doc))
		if i != nil || ps.Err() == nil {
			t.Errorf("document %d was accepted", n+1)
		}
		got.WriteString(ps.In("site.json").Error() + "\n---\n")
	}
	if *updateInventory {
		if err := os.WriteFile("testdata/inventory-problems.txt", []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/inventory-problems.txt")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got.String()); d != "" {
		t.Error(d)
	}
	if _, ps := DecodeInventory(bytes.NewReader(make([]byte, maxInventory+1))); ps.Err() == nil {
		t.Error("a document without end was accepted")
	}
}

func TestHeldIn(t *testing.T) {
	for _, c := range []struct {
		a, b, want       BlobLocation
		bundle, registry bool
	}{
		{"", InBundle, InBundle, true, false}, {"", InRegistry, InRegistry, false, true},
		{InBundle, InRegistry, InBoth, true, true}, {InRegistry, InRegistry, InRegistry, false, true}, {InBoth, InBundle, InBoth, true, true},
	} {
		if got := c.a.And(c.b); got != c.want || got.Bundle() != c.bundle || got.Registry() != c.registry {
			t.Errorf("%q and %q is %q", c.a, c.b, got)
		}
	}
}

// FuzzInventory: whatever is read is refused with a reason, or has one form that
// reads back as the same.
func FuzzInventory(f *testing.F) {
	for _, name := range []string{"testdata/inventory.json", "testdata/inventory-mistakes.txt"} {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, doc := range bytes.Split(text, []byte("---\n")) {
			f.Add(doc)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		i, ps := DecodeInventory(bytes.NewReader(text))
		if i == nil {
			if ps.Err() == nil {
				t.Fatal("refused without a reason")
			}
			return
		}
		once, err := EncodeInventory(i)
		if err != nil {
			t.Fatal(err)
		}
		again, ps := DecodeInventory(bytes.NewReader(once))
		if again == nil {
			t.Fatalf("its own form is refused: %v\n%s", ps, once)
		}
		twice, err := EncodeInventory(again)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("encoded to other bytes: %v", err)
		}
	})
}
