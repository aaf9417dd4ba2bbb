package bundle

import (
	"fmt"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/manifest"
)

// Tree lists what a registry must have for an image, each entry after all that it
// references: blobs, then manifests, then the index.
func (b *Bundle) Tree(im manifest.ImagePin) ([]v1.Descriptor, error) {
	t := &tree{bundle: b, held: b.held(), seen: map[string]bool{}}
	if err := t.add(imageDescriptor(im), 1); err != nil {
		return nil, fmt.Errorf("%s: %w", im.Reference, err)
	}
	return t.out, nil
}

// Contents lists everything that a registry must have for b: blobs and manifests, each
// after all that it references, the root last.
func (b *Bundle) Contents() ([]v1.Descriptor, error) {
	t := &tree{bundle: b, held: b.held(), seen: map[string]bool{}}
	if err := t.add(b.Root, 1); err != nil {
		return nil, err
	}
	return t.out, nil
}

type tree struct {
	bundle *Bundle
	held   map[string]int64
	seen   map[string]bool
	out    []v1.Descriptor
}

func (t *tree) add(d v1.Descriptor, depth int) error {
	if t.seen[d.Digest.String()] || depth > maxDepth {
		return nil
	}
	t.seen[d.Digest.String()] = true
	children, err := t.bundle.children(d)
	if err != nil {
		return err
	}
	for _, c := range children {
		if _, ok := t.held[c.Digest.String()]; !ok && IsIndex(d.MediaType) {
			continue // a platform that the bundle does not include
		}
		if err := t.add(c, depth+1); err != nil {
			return err
		}
	}
	t.out = append(t.out, d)
	return nil
}

// children returns the descriptors in a manifest or an index; other blobs have none.
func (b *Bundle) children(d v1.Descriptor) ([]v1.Descriptor, error) {
	if !IsIndex(d.MediaType) && !IsManifest(d.MediaType) {
		return nil, nil
	}
	text, err := b.read(d)
	if err != nil {
		return nil, err
	}
	var m parts
	if err := decodeJSON(text, &m); err != nil {
		return nil, fmt.Errorf("%s %s: %w", d.MediaType, d.Digest, err)
	}
	if err := m.check(d); err != nil {
		return nil, err
	}
	if IsIndex(d.MediaType) {
		return m.Manifests, nil
	}
	return append([]v1.Descriptor{*m.Config}, m.Layers...), nil
}

// IsManifest reports whether a registry serves this media type as a manifest, not as a
// blob. This includes indexes.
func IsManifest(mediaType string) bool {
	return mediaType == v1.MediaTypeImageManifest || mediaType == mediaDockerManifest || IsIndex(mediaType)
}

// IsIndex reports whether this media type is an index, OCI or Docker.
func IsIndex(mediaType string) bool {
	return mediaType == v1.MediaTypeImageIndex || mediaType == mediaDockerList
}
