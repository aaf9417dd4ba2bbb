package bundle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"

	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/bundle/sbom"
	"github.com/mensylisir/kubexm/manifest"
)

// PullRequest says what to pull and where to.
type PullRequest struct {
	From     Remote
	Policy   Policy // asked about the root before anything else is fetched
	Output   string // the archive's path; written beside it first, and renamed
	Cache    *fetch.Cache
	Client   Registry // over From.Sources()
	Parallel int

	// Planned, if set, is told what is to be done before a byte of payload moves.
	Planned func(Plan)
}

// ErrNoBundle is why nothing can be pulled: there is no such tag.
var ErrNoBundle = errors.New("no such bundle in the registry")

// Pull fetches a whole bundle from a registry into an archive, with its
// signatures. The root is the same digest for digest; the archive has the bytes
// that were pushed when it was built by the same version of kubexm, whose
// choice of what to compress it follows. What was fetched stays in the cache: a
// pull that broke off goes on.
func Pull(ctx context.Context, r PullRequest) (*Built, error) {
	repo, err := r.From.repository()
	if err != nil {
		return nil, err
	}
	root, err := repo.Resolve(ctx, repo.Reference.Reference)
	if errors.Is(err, errdef.ErrNotFound) {
		return nil, fmt.Errorf("%s: %w", r.From.Reference, ErrNoBundle)
	}
	if err != nil {
		return nil, fmt.Errorf("ask for %s: %w", r.From.Reference, err)
	}
	if root.MediaType != v1.MediaTypeImageIndex {
		return nil, &FormatError{Code: CodeDocument, What: fmt.Sprintf("%s is a %s", r.From.Reference, root.MediaType)}
	}
	signatures, err := pulledSignatures(ctx, repo, root)
	if err != nil {
		return nil, err
	}
	if _, err := r.Policy.check(ctx, root, signatures); err != nil {
		return nil, err
	}
	p := &puller{PullRequest: r, pin: manifest.ImagePin{Reference: r.From.Reference}}
	h, lock, err := p.head(ctx, plain(root))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.From.Reference, err)
	}
	_, config, _ := p.documents()
	b := BuildRequest{Lock: lock, Config: config, Output: r.Output, Cache: r.Cache, Fetcher: p, Parallel: r.Parallel, Planned: r.Planned}
	built, err := assemble(ctx, b, h, signatures)
	if err != nil {
		return nil, err
	}
	// What root, lock and blobs say of each other was the registry's word so far.
	whole, err := Open(ctx, r.Output, r.Policy)
	if err != nil {
		return nil, errors.Join(err, os.Remove(r.Output))
	}
	return built, whole.Close()
}

// puller is one Pull at work; as a Fetcher it finds everything in one repository.
type puller struct {
	PullRequest
	pin   manifest.ImagePin // the repository, as the client takes it
	texts map[string][]byte // the metadata's documents, by media type
}

func (p *puller) documents() (lock, config, summary []byte) {
	return p.texts[mediaLock], p.texts[mediaConfig], p.texts[mediaSummary]
}

// head fetches the root and the documents under it.
func (p *puller) head(ctx context.Context, root v1.Descriptor) (*head, *manifest.Lock, error) {
	h := &head{}
	var err error
	if h.root, err = p.document(ctx, root, fetch.IndexRole); err != nil {
		return nil, nil, err
	}
	h.root.descriptor.ArtifactType = TypeRoot
	var index v1.Index
	if err := json.Unmarshal(h.root.bytes, &index); err != nil {
		return nil, nil, &FormatError{Code: CodeDocument, What: err.Error()}
	}
	if index.ArtifactType != TypeRoot || len(index.Manifests) == 0 || index.Manifests[0].ArtifactType != TypeMetadata {
		return nil, nil, rootError(index.ArtifactType)
	}
	seen := map[digest.Digest]bool{}
	for _, d := range index.Manifests {
		if d.Annotations[AnnotationImage] != "" {
			continue
		}
		docs, err := p.child(ctx, d)
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
	text, config, summary := p.documents()
	if text == nil || config == nil || summary == nil {
		return nil, nil, &FormatError{Code: CodeDocument, What: "the metadata is not whole"}
	}
	lock, problems := manifest.DecodeLock(bytes.NewReader(text))
	if err := problems.In("kubexm.lock").Err(); err != nil {
		return nil, nil, &FormatError{Code: CodeDocument, What: "the lock in it is not one: " + err.Error()}
	}
	h.index, err = indexOf(h.root.descriptor, nil)
	return h, lock, err
}

// described tells a child of the root that is about the bundle, and lies in the
// archive's head, from one that is part of it.
func described(d v1.Descriptor) bool {
	return d.ArtifactType == TypeMetadata || d.ArtifactType == sbom.MediaSPDX || d.ArtifactType == sbom.MediaCycloneDX
}

// child fetches a child of the root with the documents under it that follow
// from no lock: its config, and its layers where they are about the bundle.
func (p *puller) child(ctx context.Context, d v1.Descriptor) ([]document, error) {
	m, err := p.document(ctx, d, fetch.ManifestRole)
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
		doc, err := p.document(ctx, x, fetch.ConfigRole)
		if err != nil {
			return nil, err
		}
		docs = append(docs, doc)
		if d.ArtifactType == TypeMetadata {
			if p.texts == nil {
				p.texts = map[string][]byte{}
			}
			p.texts[x.MediaType] = doc.bytes
		}
	}
	return docs, nil
}

// document brings a small blob into the cache and reads it, checked.
func (p *puller) document(ctx context.Context, d v1.Descriptor, role fetch.Role) (document, error) {
	if d.Size < 0 || d.Size > maxDocument || d.Digest.Validate() != nil || d.Digest.Algorithm() != digest.SHA256 {
		return document{}, &FormatError{Code: CodeDocument, What: fmt.Sprintf("document %q of %d bytes", d.Digest, d.Size)}
	}
	for again := range 2 {
		if err := p.FetchContent(ctx, p.pin, fetch.Content{Digest: d.Digest.String(), Size: d.Size, MediaType: d.MediaType, Role: role}); err != nil {
			return document{}, err
		}
		f, err := p.Cache.Open(d.Digest.Encoded())
		if err != nil {
			return document{}, err
		}
		text, err := io.ReadAll(io.LimitReader(f, d.Size+1))
		if err := errors.Join(err, f.Close()); err != nil {
			return document{}, err
		}
		if digest.FromBytes(text) == d.Digest {
			return document{descriptor: plain(d), bytes: text}, nil
		}
		if again == 0 { // a damaged cache
			if err := p.Cache.Discard(d.Digest.Encoded()); err != nil {
				return document{}, err
			}
		}
	}
	return document{}, &archive.Error{Code: archive.ErrDigest, Offset: -1, Detail: "document " + d.Digest.String() + " has other content"}
}

// FetchArtifact implements Fetcher: an artifact's files are blobs of the repository.
func (p *puller) FetchArtifact(ctx context.Context, a manifest.Artifact) error {
	for _, b := range a.Blobs() {
		if err := p.FetchContent(ctx, p.pin, fetch.Content{Digest: "sha256:" + b.SHA256, Size: b.Size, MediaType: mediaFile, Role: fetch.LayerRole}); err != nil {
			return err
		}
	}
	return nil
}

// FetchMember implements Fetcher.
func (p *puller) FetchMember(ctx context.Context, _ manifest.Artifact, m manifest.Member) error {
	return p.FetchContent(ctx, p.pin, fetch.Content{Digest: "sha256:" + m.SHA256, Size: m.Size, MediaType: mediaFile, Role: fetch.LayerRole})
}

// ImageContent implements Fetcher.
func (p *puller) ImageContent(ctx context.Context, im manifest.ImagePin) ([]fetch.Content, error) {
	im.Reference = p.pin.Reference
	return p.Client.ImageContent(ctx, im)
}

// FetchContent implements Fetcher.
func (p *puller) FetchContent(ctx context.Context, _ manifest.ImagePin, c fetch.Content) error {
	return p.Client.FetchContent(ctx, p.pin, c)
}

func sortedKeys[V any](m map[int]V) []int { return slices.Sorted(maps.Keys(m)) }
