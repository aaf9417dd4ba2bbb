package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/testdata/upstream"
)

// A mirror that speaks https with a CA of the site's own is trusted when the
// sources name that CA, and not without.
func TestOwnCA(t *testing.T) {
	s := openSite(t, quickstart, upstream.Options{Scale: 0.005}, true)
	s.must(t, s.pin()...)
	out := s.newFolder(t, "out")
	s.must(t, s.build(filepath.Join(out, "bundle.tar.zst"), filepath.Join(s.dir, "cache-1"))...)

	text, err := os.ReadFile(s.paths.Sources)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, l := range strings.Split(string(text), "\n") {
		if !strings.Contains(l, "caFile:") {
			lines = append(lines, l)
		}
	}
	if err := os.WriteFile(s.paths.Sources, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	r := s.run(t, s.build(filepath.Join(out, "other.tar.zst"), filepath.Join(s.dir, "cache-2")))
	if r.code == 0 || !strings.Contains(r.stderr, "certificate") {
		t.Errorf("without the CA: exit %d\n%s", r.code, r.stderr)
	}
}

// An image that is published as one manifest, without an index, is as good as
// another for the platform that it is for, and refused where more are wanted.
func TestImageOfOneManifest(t *testing.T) {
	const single = "registry.k8s.io/pause:3.10"
	text, err := os.ReadFile(quickstart)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "amd64.yaml")
	one := strings.NewReplacer(", arch: arm64", "", "[linux/amd64, linux/arm64]", "[linux/amd64]").Replace(string(text))
	if err := os.WriteFile(config, []byte(one), 0o600); err != nil {
		t.Fatal(err)
	}
	o := upstream.Options{Scale: 0.005, Single: []string{single}}
	s := openSite(t, config, o, false)
	s.must(t, s.pin()...)
	file, layout := filepath.Join(s.newFolder(t, "out"), "bundle.tar.zst"), filepath.Join(s.dir, "layout")
	s.must(t, s.build(file, filepath.Join(s.dir, "cache"))...)
	s.must(t, "bundle", "verify", "--allow-unsigned", file)
	s.must(t, "bundle", "extract", "--allow-unsigned", file, "--oci", layout, single)
	for _, p := range s.pinned(t).Images {
		if p.Reference != single {
			continue
		}
		if p.Digest != p.Platforms[0].Digest || len(p.Platforms) != 1 {
			t.Errorf("it is pinned as %+v", p)
		}
		if !exists(filepath.Join(layout, "blobs", "sha256", strings.TrimPrefix(p.Digest, "sha256:"))) {
			t.Error("its manifest is not in the layout")
		}
	}

	two := openSite(t, quickstart, o, false)
	if r := two.run(t, two.pin()); r.code == 0 || !strings.Contains(r.stderr, single) || !strings.Contains(r.stderr, "linux/arm64") {
		t.Errorf("for two platforms: exit %d\n%s", r.code, r.stderr)
	}
}
