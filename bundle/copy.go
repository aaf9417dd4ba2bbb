package bundle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/bundle/sbom"
	"github.com/mensylisir/kubexm/manifest"
)

// Published is a bundle in a registry.
type Published struct {
	Name       string // its reference, for errors
	Root       v1.Descriptor
	Signatures []byte // the lines of its signature slot
	// Document reads one of its manifests, indexes or configs and checks it against d.
	Document func(ctx context.Context, d v1.Descriptor, role fetch.Role) ([]byte, error)
}

// Copy writes the archive of a published bundle. It asks the policy about the root before
// it reads anything below it. It sets r.Lock and r.Config from the bundle; r.Fetcher
// downloads its files and images. The root keeps its digest. Which blobs are compressed is
// the choice of this version of kubexm.
func Copy(ctx context.Context, from Published, policy Policy, r BuildRequest) (*BuildResult, error) {
	if _, err := policy.check(ctx, from.Root, from.Signatures); err != nil {
		return nil, err
	}
	c := &copier{Published: from}
	h, lock, err := c.head(ctx, from.Root)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from.Name, err)
	}
	_, r.Config, _ = c.documents()
	r.Lock = lock
	built, err := assemble(ctx, r, h, from.Signatures)
	if err != nil {
		return nil, err
	}
	// Until here only the registry vouched that root, lock and blobs match: check the
	// archive.
	whole, err := Open(ctx, r.Output, policy)
	if err != nil {
		return nil, errors.Join(err, os.Remove(r.Output))
	}
	return built, whole.Close()
}

// copier is the state of one Copy.
type copier struct {
	Published
	texts map[string][]byte // the metadata's documents, by media type
}

func (c *copier) documents() (lock, config, summary []byte) {
	return c.texts[mediaLock], c.texts[mediaConfig], c.texts[mediaSummary]
}

// document reads a document after checking that d can be one.
func (c *copier) document(ctx context.Context, d v1.Descriptor, role fetch.Role) (document, error) {
	if d.Size < 0 || d.Size > maxDocument || d.Digest.Validate() != nil || d.Digest.Algorithm() != digest.SHA256 {
		return document{}, &FormatError{Code: CodeDocument, What: fmt.Sprintf("document %q of %d bytes", d.Digest, d.Size)}
	}
	text, err := c.Document(ctx, d, role)
	if err != nil {
		return document{}, err
	}
	return document{descriptor: v1.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}, bytes: text}, nil
}

// head fetches the root and the documents under it.
func (c *copier) head(ctx context.Context, root v1.Descriptor) (*head, *manifest.Lock, error) {
	h := &head{}
	var err error
	if h.root, err = c.document(ctx, root, fetch.IndexRole); err != nil {
		return nil, nil, err
	}
	h.root.descriptor.ArtifactType = TypeRoot
	var index v1.Index
	if err := json.Unmarshal(h.root.bytes, &index); err != nil {
		return nil, nil, &FormatError{Code: CodeDocument, What: err.Error()}
	}
	if index.ArtifactType != TypeRoot || len(index.Manifests) == 0 || index.Manifests[0].ArtifactType != typeMetadata {
		return nil, nil, rootError(index.ArtifactType)
	}
	seen := map[digest.Digest]bool{}
	for _, d := range index.Manifests {
		if d.Annotations[AnnotationImage] != "" {
			continue
		}
		docs, err := c.child(ctx, d)
		if err != nil {
			return nil, nil, err
		}
		docs = slices.DeleteFunc(docs, func(x document) bool {
			twice := seen[x.descriptor.Digest]
			seen[x.descriptor.Digest] = true
			return twice
		})
		if described(d) {
			h.metadata = append(h.metadata, docs...)
		} else {
			h.artifacts = append(h.artifacts, docs...)
		}
	}
	text, config, summary := c.documents()
	if text == nil || config == nil || summary == nil {
		return nil, nil, &FormatError{Code: CodeDocument, What: "the metadata is incomplete"}
	}
	lock, problems := manifest.DecodeLock(bytes.NewReader(text))
	if err := problems.In("kubexm.lock").Err(); err != nil {
		return nil, nil, &FormatError{Code: CodeDocument, What: "its lock is not valid: " + err.Error()}
	}
	h.index, err = indexOf(h.root.descriptor, nil)
	return h, lock, err
}

// described reports whether a child of the root describes the bundle. Such children are
// stored in the archive's head.
func described(d v1.Descriptor) bool {
	return d.ArtifactType == typeMetadata || d.ArtifactType == sbom.MediaSPDX || d.ArtifactType == sbom.MediaCycloneDX
}

// child fetches a child of the root and its documents that do not follow from the lock: its
// config, and its layers if they describe the bundle.
func (c *copier) child(ctx context.Context, d v1.Descriptor) ([]document, error) {
	m, err := c.document(ctx, d, fetch.ManifestRole)
	if err != nil {
		return nil, err
	}
	docs := []document{m}
	var parsed v1.Manifest
	if err := json.Unmarshal(m.bytes, &parsed); err != nil {
		return nil, &FormatError{Code: CodeDocument, What: err.Error()}
	}
	wanted := []v1.Descriptor{parsed.Config}
	if described(d) {
		wanted = append(wanted, parsed.Layers...)
	}
	for _, x := range wanted {
		doc, err := c.document(ctx, x, fetch.ConfigRole)
		if err != nil {
			return nil, err
		}
		docs = append(docs, doc)
		if d.ArtifactType == typeMetadata {
			if c.texts == nil {
				c.texts = map[string][]byte{}
			}
			c.texts[x.MediaType] = doc.bytes
		}
	}
	return docs, nil
}
