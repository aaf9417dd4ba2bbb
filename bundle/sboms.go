package bundle

import (
	"fmt"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle/sbom"
	"github.com/mensylisir/kubexm/manifest"
)

// SBOM returns the bill of materials in a format of package sbom: the one in the bundle, or
// one generated from its lock if the bundle was built without.
func (b *Bundle) SBOM(format string) ([]byte, error) {
	media := map[string]string{sbom.SPDX: sbom.MediaSPDX, sbom.CycloneDX: sbom.MediaCycloneDX}[format]
	if media == "" {
		return nil, fmt.Errorf("no bill of materials has the format %q", format)
	}
	for _, d := range b.others {
		if d.ArtifactType != media {
			continue
		}
		parts, err := b.children(d)
		if err != nil {
			return nil, fmt.Errorf("bill of materials: %w", err)
		}
		for _, p := range parts {
			if p.MediaType == media {
				return b.read(p)
			}
		}
	}
	return sbom.Generate(b.Lock, format)
}

// addSBOMs adds the bills of materials to the root, each in its own manifest, so that tools
// find them by their artifact types.
func (h *head) addSBOMs(l *manifest.Lock, root *v1.Index, created string) error {
	for _, f := range []struct{ format, media, title string }{
		{sbom.SPDX, sbom.MediaSPDX, "sbom.spdx.json"}, {sbom.CycloneDX, sbom.MediaCycloneDX, "sbom.cdx.json"},
	} {
		text, err := sbom.Generate(l, f.format)
		if err != nil {
			return err
		}
		bill := titled(newDocument(f.media, text), f.title)
		m, err := artifactManifest(f.media, created, []document{bill})
		if err != nil {
			return err
		}
		m.descriptor.Annotations = map[string]string{annotationID: "sbom/" + f.format}
		h.metadata = append(h.metadata, m, bill)
		root.Manifests = append(root.Manifests, m.descriptor)
	}
	return nil
}
