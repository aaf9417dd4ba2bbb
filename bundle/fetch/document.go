package fetch

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// documentBytes is the maximum size of a manifest or index, the same as in registries.
const documentBytes = 4 << 20

// Docker's media types of images. They are preserved, because another type would change the
// digest.
const (
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	dockerIndex    = "application/vnd.docker.distribution.manifest.list.v2+json"
	dockerSchema1  = "application/vnd.docker.distribution.manifest.v1"
)

// documentTypes are the media types to request from a registry, indexes first: some
// registries serve the first one that they have.
func documentTypes() []string {
	return []string{ocispec.MediaTypeImageIndex, dockerIndex, ocispec.MediaTypeImageManifest, dockerManifest}
}

// document is a manifest or an index, with its original bytes.
type document struct {
	bytes     []byte
	digest    digest.Digest
	mediaType string
	children  []ocispec.Descriptor // of an index
	config    ocispec.Descriptor   // of a manifest
	layers    []ocispec.Descriptor // of a manifest
}

func (d *document) index() bool {
	return d.mediaType == ocispec.MediaTypeImageIndex || d.mediaType == dockerIndex
}

func (d *document) role() Role {
	if d.index() {
		return IndexRole
	}
	return ManifestRole
}

// content returns the document itself as content of its image.
func (d *document) content() Content {
	return Content{Digest: d.digest.String(), Size: int64(len(d.bytes)), MediaType: d.mediaType, Role: d.role()}
}

// parseDocument parses a manifest or index. served is the media type of the response, or
// "". It rejects what a bundle cannot contain.
func parseDocument(b []byte, served string) (*document, error) {
	var raw struct {
		SchemaVersion int                  `json:"schemaVersion"`
		MediaType     string               `json:"mediaType"`
		Config        *ocispec.Descriptor  `json:"config"`
		Layers        []ocispec.Descriptor `json:"layers"`
		Manifests     []ocispec.Descriptor `json:"manifests"`
		FSLayers      json.RawMessage      `json:"fsLayers"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return nil, fmt.Errorf("manifest is not valid: %w", err)
	}
	served, _, _ = mime.ParseMediaType(served)
	if raw.SchemaVersion == 1 || raw.FSLayers != nil || strings.HasPrefix(served, dockerSchema1) {
		return nil, errors.New("manifest uses Docker's schema 1, which no current runtime supports; push the image again with a current tool")
	}
	if raw.Manifests != nil && (raw.Config != nil || raw.Layers != nil) {
		return nil, errors.New("manifest is both an index and an image")
	}
	d := &document{bytes: b, digest: digest.FromBytes(b), children: raw.Manifests, layers: raw.Layers}
	var err error
	if d.mediaType, err = documentType(served, raw.MediaType, raw.Manifests != nil); err != nil {
		return nil, err
	}
	if d.index() != (raw.Manifests != nil) || d.index() == (raw.Config != nil) {
		return nil, fmt.Errorf("manifest does not match its media type %s", d.mediaType)
	}
	if raw.Config != nil {
		d.config = *raw.Config
	}
	return d, d.check()
}

// documentType returns the media type: the one in the document, else the registry's, else
// one that follows from the fields. The first two must agree.
func documentType(served, own string, index bool) (string, error) {
	known := func(s string) bool { return slices.Contains(documentTypes(), s) }
	switch {
	case own != "" && !known(own):
		return "", fmt.Errorf("manifest has media type %q, which is not one of an image", own)
	case own != "" && known(served) && served != own:
		return "", fmt.Errorf("manifest states the media type %s, the registry states %s", own, served)
	case own != "":
		return own, nil
	case known(served):
		return served, nil
	case index:
		return ocispec.MediaTypeImageIndex, nil
	}
	return ocispec.MediaTypeImageManifest, nil
}

// check rejects descriptors that cannot be fetched and stored.
func (d *document) check() error {
	for _, c := range d.children {
		if err := checkDescriptor(c); err != nil {
			return fmt.Errorf("manifest %s: %w", d.digest, err)
		}
	}
	if d.index() {
		return nil
	}
	for _, c := range append([]ocispec.Descriptor{d.config}, d.layers...) {
		if err := checkDescriptor(c); err != nil {
			return fmt.Errorf("manifest %s: %w", d.digest, err)
		}
		if len(c.URLs) > 0 || strings.Contains(c.MediaType, ".foreign.") || strings.Contains(c.MediaType, ".nondistributable.") {
			return fmt.Errorf("manifest %s: %s is stored outside the registry (%s), and a bundle cannot contain it; use an image without foreign layers",
				d.digest, c.Digest, c.MediaType)
		}
	}
	return nil
}

func checkDescriptor(c ocispec.Descriptor) error {
	if err := c.Digest.Validate(); err != nil {
		return fmt.Errorf("digest %q: %w", c.Digest, err)
	}
	if c.Digest.Algorithm() != digest.SHA256 {
		return fmt.Errorf("digest %s is not sha256, the only algorithm that bundles support", c.Digest)
	}
	if c.Size < 0 {
		return fmt.Errorf("%s has a size of %d", c.Digest, c.Size)
	}
	return nil
}

// parts returns the other blobs of d's platform: its config and its layers, each once.
func (d *document) parts() []Content {
	out := []Content{{Digest: d.config.Digest.String(), Size: d.config.Size, MediaType: d.config.MediaType, Role: ConfigRole}}
	seen := map[digest.Digest]bool{d.config.Digest: true}
	for _, l := range d.layers {
		if !seen[l.Digest] {
			seen[l.Digest] = true
			out = append(out, Content{Digest: l.Digest.String(), Size: l.Size, MediaType: l.MediaType, Role: LayerRole})
		}
	}
	return out
}
