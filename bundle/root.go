package bundle

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/manifest"
)

// ociLayout is the content of the archive's oci-layout file.
var ociLayout = []byte(`{"imageLayoutVersion":"1.0.0"}`)

// document is one small blob that is generated, not fetched.
type document struct {
	descriptor v1.Descriptor
	bytes      []byte
}

func newDocument(mediaType string, b []byte) document {
	return document{bytes: b, descriptor: v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(b), Size: int64(len(b))}}
}

// head is the part of a bundle that follows from the lock and the config, without payload.
type head struct {
	root      document
	metadata  []document // root's first children and their layers, in the order they are stored
	artifacts []document // one manifest per artifact, in the lock's order; a chart's is followed by its config
	index     []byte     // index.json
}

// newHead builds the root and all documents below it. Its bytes depend only on the lock,
// the config and the summary.
func newHead(l *manifest.Lock, config []byte) (*head, error) {
	lock, err := manifest.EncodeLock(l)
	if err != nil {
		return nil, err
	}
	summary, err := encode(Summarize(l))
	if err != nil {
		return nil, err
	}
	empty := newDocument(v1.MediaTypeEmptyJSON, v1.DescriptorEmptyJSON.Data)
	layers := []document{
		titled(newDocument(mediaLock, lock), "kubexm.lock"),
		titled(newDocument(mediaConfig, config), "config.yaml"),
		titled(newDocument(mediaSummary, summary), "summary.json"),
	}
	created := l.Created.UTC().Format(time.RFC3339)
	meta, err := artifactManifest(typeMetadata, created, layers)
	if err != nil {
		return nil, err
	}
	meta.descriptor.Annotations = map[string]string{annotationID: "metadata"}
	h := &head{metadata: append([]document{meta, empty}, layers...)}

	root := v1.Index{
		Versioned:    specs.Versioned{SchemaVersion: 2},
		MediaType:    v1.MediaTypeImageIndex,
		ArtifactType: TypeRoot,
		Manifests:    []v1.Descriptor{meta.descriptor},
		Annotations: map[string]string{
			v1.AnnotationCreated: created,
			annotationCluster:    l.Cluster,
			annotationSerial:     strconv.FormatInt(l.Serial, 10),
		},
	}
	if err := h.addSBOMs(l, &root, created); err != nil {
		return nil, err
	}
	seen := map[digest.Digest]bool{}
	for _, a := range l.Artifacts {
		docs, err := artifactDocuments(a, created)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.ID, err)
		}
		for _, d := range docs { // two add-ons may use the same chart
			if !seen[d.descriptor.Digest] {
				seen[d.descriptor.Digest] = true
				h.artifacts = append(h.artifacts, d)
			}
		}
		root.Manifests = append(root.Manifests, docs[0].descriptor)
	}
	for _, im := range l.Images {
		root.Manifests = append(root.Manifests, imageDescriptor(im))
	}
	text, err := encode(root)
	if err != nil {
		return nil, err
	}
	h.root = newDocument(v1.MediaTypeImageIndex, text)
	h.root.descriptor.ArtifactType = TypeRoot
	h.index, err = indexOf(h.root.descriptor, nil)
	return h, err
}

// artifactDocuments wraps the blobs of one artifact in a manifest, so that any OCI tool can
// pull them by name, and helm can pull a chart. The manifest is the first element.
func artifactDocuments(a manifest.Artifact, created string) ([]document, error) {
	media := mediaFile
	if a.Kind == manifest.Chart {
		media = mediaChart
	}
	var layers []document
	for _, b := range a.Blobs() {
		layers = append(layers, titled(document{descriptor: v1.Descriptor{
			MediaType: media, Digest: digest.NewDigestFromEncoded(digest.SHA256, b.SHA256), Size: b.Size,
		}}, b.Name))
	}
	docs := make([]document, 1, 2)
	var err error
	if a.Kind == manifest.Chart {
		text, eerr := encode(a.Chart)
		if eerr != nil {
			return nil, eerr
		}
		config := newDocument(mediaChartMeta, text)
		docs = append(docs, config)
		docs[0], err = manifestOf("", config.descriptor, created, layers)
	} else {
		docs[0], err = artifactManifest(typeArtifact, created, layers)
	}
	if err != nil {
		return nil, err
	}
	docs[0].descriptor.Annotations = map[string]string{annotationID: a.ID}
	if !a.Platform.IsZero() {
		docs[0].descriptor.Annotations[annotationPlatform] = a.Platform.String()
	}
	return docs, nil
}

// artifactManifest builds an OCI 1.1 artifact manifest for layers.
func artifactManifest(kind, created string, layers []document) (document, error) {
	return manifestOf(kind, v1.DescriptorEmptyJSON, created, layers)
}

// manifestOf builds a manifest. kind is "" if the config's media type identifies the type.
func manifestOf(kind string, config v1.Descriptor, created string, layers []document) (document, error) {
	m := v1.Manifest{
		Versioned:    specs.Versioned{SchemaVersion: 2},
		MediaType:    v1.MediaTypeImageManifest,
		ArtifactType: kind,
		Config:       config,
		Annotations:  map[string]string{v1.AnnotationCreated: created},
	}
	for _, l := range layers {
		m.Layers = append(m.Layers, l.descriptor)
	}
	text, err := encode(m)
	if err != nil {
		return document{}, err
	}
	d := newDocument(v1.MediaTypeImageManifest, text)
	d.descriptor.ArtifactType = kind
	return d, nil
}

// imageDescriptor returns the descriptor of an image with the annotations that containerd
// and OCI tools read.
func imageDescriptor(im manifest.ImagePin) v1.Descriptor {
	return v1.Descriptor{
		MediaType: im.MediaType,
		Digest:    digest.Digest(im.Digest),
		Size:      im.Size,
		Annotations: map[string]string{
			annotationID:         im.ID,
			AnnotationImage:      im.Reference,
			v1.AnnotationRefName: im.Reference,
		},
	}
}

func titled(d document, title string) document {
	d.descriptor.Annotations = map[string]string{v1.AnnotationTitle: title}
	return d
}

// encode is the canonical JSON form of all generated documents. Go sorts map keys, so equal
// values have equal bytes.
func encode(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return append(b, '\n'), nil
}
