package bundle

import (
	"bytes"
	"slices"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle/sbom"
)

// TestBundleIncludesItsBills: a bundle holds both under its root; one without
// them has them made of its lock, the same bytes.
func TestBundleIncludesItsBills(t *testing.T) {
	w := newWorld(t)
	b, err := Open(t.Context(), w.build(t, 2), anyone)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for format, media := range map[string]string{sbom.SPDX: sbom.MediaSPDX, sbom.CycloneDX: sbom.MediaCycloneDX} {
		if !slices.ContainsFunc(b.others, func(d v1.Descriptor) bool { return d.ArtifactType == media }) {
			t.Errorf("no child of the root is a %s", media)
		}
		held, err := b.SBOM(format)
		if err != nil {
			t.Fatal(err)
		}
		made, err := sbom.Generate(w.Lock, format)
		if err != nil || !bytes.Equal(held, made) {
			t.Errorf("%s: held and made differ (%v)", format, err)
		}
		without := &Bundle{Lock: b.Lock, archive: b.archive}
		if text, err := without.SBOM(format); err != nil || !bytes.Equal(text, made) {
			t.Errorf("%s: without one in it: %v", format, err)
		}
	}
}
