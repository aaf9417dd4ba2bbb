package bundle

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
	"oras.land/oras-go/v2/registry/remote"
)

// typeSignature is the artifact type of a signature that refers to a root; one
// of Sigstore's bundles is its one layer.
const typeSignature = "application/vnd.dev.sigstore.bundle.v0.3+json"

// annotationLine says which line of the signature slot a signature is.
const annotationLine = "io.kubexm.signature.line"

// PushOptions says how Push works.
type PushOptions struct {
	Parallel int               // blobs sent at once; at least 1
	Sent     func(bytes int64) // told how many bytes went since the last call; may be nil
	// Planned, if set, is told how many bytes there are, held ones too.
	Planned func(bytes int64)
}

// Pushed counts what Push did.
type Pushed struct {
	Reference  string        `json:"reference"`
	Root       digest.Digest `json:"root"`
	Sent       int           `json:"sent"` // blobs and manifests
	Bytes      int64         `json:"bytes"`
	Held       int           `json:"held"` // that the registry held already
	Signatures int           `json:"signatures"`
}

// Push sends the whole bundle to a registry, every byte as it is and each blob
// checked while it is read: blobs, then manifests, each after what it refers to,
// then the root under its tag, and last the signatures, which refer to it. What
// the registry holds already is not sent, so that a push that broke off goes on.
func (b *Bundle) Push(ctx context.Context, to Remote, o PushOptions) (*Pushed, error) {
	repo, err := to.repository()
	if err != nil {
		return nil, err
	}
	if repo.Reference.ValidateReferenceAsTag() != nil {
		return nil, &ReferenceError{to.Reference, "a bundle is pushed under a tag"}
	}
	t := &tree{bundle: b, held: b.held(), seen: map[string]bool{}}
	if err := t.add(b.Root, 1); err != nil {
		return nil, err
	}
	p := &pusher{bundle: b, repo: repo, sent: o.Sent, done: Pushed{Reference: to.Reference, Root: b.Root.Digest}}
	if p.sent == nil {
		p.sent = func(int64) {}
	}
	if o.Planned != nil {
		total := int64(0)
		for _, d := range t.out {
			total += d.Size
		}
		o.Planned(total)
	}
	g, blobs := errgroup.WithContext(ctx)
	g.SetLimit(max(o.Parallel, 1))
	for _, d := range t.out {
		if IsManifest(d.MediaType) {
			continue
		}
		g.Go(func() error { return p.blob(blobs, d) })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for _, d := range t.out {
		if IsManifest(d.MediaType) {
			if err := p.manifest(ctx, d, repo.Reference.Reference); err != nil {
				return nil, fmt.Errorf("send manifest %s: %w", d.Digest, Sparse(d, err))
			}
		}
	}
	if err := p.signatures(ctx); err != nil {
		return nil, fmt.Errorf("send signatures: %w", err)
	}
	return &p.done, nil
}

// pusher is one Push at work.
type pusher struct {
	bundle *Bundle
	repo   *remote.Repository
	sent   func(int64)

	mu   sync.Mutex
	done Pushed
}

func (p *pusher) count(d v1.Descriptor, held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if held {
		p.done.Held++
		p.sent(d.Size)
		return
	}
	p.done.Sent++
	p.done.Bytes += d.Size
}

// plain is d without what a parent says of it.
func plain(d v1.Descriptor) v1.Descriptor {
	return v1.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
}

func (p *pusher) blob(ctx context.Context, d v1.Descriptor) error {
	held, err := p.repo.Blobs().Exists(ctx, plain(d))
	if err != nil {
		return fmt.Errorf("ask %s for %s: %w", p.repo.Reference.Registry, d.Digest, err)
	}
	if held {
		p.count(d, true)
		return nil
	}
	rc, _, err := p.bundle.Blob(d.Digest.String())
	if err != nil {
		return err
	}
	sending := Body(rc, p.sent)
	defer sending.Close()
	if err := p.repo.Blobs().Push(ctx, plain(d), sending); err != nil {
		return fmt.Errorf("send blob %s: %w", d.Digest, err)
	}
	p.count(d, false)
	return nil
}

// manifest sends a manifest or an index; the root under its tag, so that a tag
// names a whole bundle or none.
func (p *pusher) manifest(ctx context.Context, d v1.Descriptor, tag string) error {
	text, err := p.bundle.read(d)
	if err != nil {
		return err
	}
	if d.Digest == p.bundle.Root.Digest {
		defer p.count(d, false)
		return p.repo.Manifests().PushReference(ctx, plain(d), bytes.NewReader(text), tag)
	}
	held, err := p.repo.Manifests().Exists(ctx, plain(d))
	if err != nil {
		return err
	}
	p.count(d, held)
	if held {
		return nil
	}
	p.sent(d.Size)
	return p.repo.Manifests().Push(ctx, plain(d), bytes.NewReader(text))
}

// signatures sends each line of the signature slot as an artifact that refers
// to the root.
func (p *pusher) signatures(ctx context.Context) error {
	lines, err := p.bundle.archive.Signatures()
	if err != nil {
		return err
	}
	for line := range bytes.Lines(lines) {
		layer := newDocument(typeSignature, bytes.TrimSuffix(line, []byte{'\n'}))
		m := v1.Manifest{
			Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest, ArtifactType: typeSignature,
			Config: v1.DescriptorEmptyJSON, Layers: []v1.Descriptor{layer.descriptor}, Subject: new(plain(p.bundle.Root)),
			Annotations: map[string]string{annotationLine: strconv.Itoa(p.done.Signatures + 1)},
		}
		text, err := encode(m)
		if err != nil {
			return err
		}
		for _, x := range []document{newDocument(v1.MediaTypeEmptyJSON, v1.DescriptorEmptyJSON.Data), layer} {
			if held, err := p.repo.Blobs().Exists(ctx, plain(x.descriptor)); err != nil || held {
				if err != nil {
					return err
				}
				continue
			}
			if err := p.repo.Blobs().Push(ctx, plain(x.descriptor), bytes.NewReader(x.bytes)); err != nil {
				return err
			}
		}
		d := newDocument(v1.MediaTypeImageManifest, text).descriptor
		if err := p.repo.Manifests().Push(ctx, d, bytes.NewReader(text)); err != nil {
			return err
		}
		p.done.Signatures++
	}
	return nil
}

// The bounds of what is read of signatures in a registry.
const (
	maxSignatures     = 64
	maxReferrers      = 256 // manifests that are read to find these
	maxSignatureBytes = 256 << 10
	maxReferrerPages  = 64
)

// pulledSignatures gives the signatures that refer to root, as lines of the slot.
// Some registries list what refers by the media type of its config, which is empty
// here, in place of its artifact type: these are asked for all, and what is listed
// so is read.
func pulledSignatures(ctx context.Context, repo *remote.Repository, root v1.Descriptor) ([]byte, error) {
	lines := map[int][]byte{}
	read := 0
	listed := &remote.Repository{Reference: repo.Reference, PlainHTTP: repo.PlainHTTP, Client: Pages(repo.Client, maxReferrerPages)}
	err := listed.Referrers(ctx, plain(root), "", func(found []v1.Descriptor) error {
		for _, d := range found {
			if d.ArtifactType != typeSignature && d.ArtifactType != v1.MediaTypeEmptyJSON {
				continue
			}
			if read++; len(lines) >= maxSignatures || read > maxReferrers {
				return fmt.Errorf("more than %d signatures, or than %d artifacts that may be some", maxSignatures, maxReferrers)
			}
			n, line, err := pulledSignature(ctx, repo, d)
			if err != nil {
				return err
			}
			if line == nil {
				continue
			}
			for ; lines[n] != nil; n++ { // one that was not pushed by kubexm
			}
			lines[n] = line
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("signatures of %s: %w", root.Digest, err)
	}
	var out []byte
	for _, n := range sortedKeys(lines) {
		out = append(append(out, lines[n]...), '\n')
	}
	return out, nil
}

// pulledSignature gives a signature and which line it was; nil for what is none.
func pulledSignature(ctx context.Context, repo *remote.Repository, d v1.Descriptor) (int, []byte, error) {
	text, err := fetchSmall(ctx, repo.Manifests(), d)
	if err != nil {
		return 0, nil, err
	}
	var m v1.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return 0, nil, err
	}
	if m.ArtifactType != typeSignature {
		return 0, nil, nil
	}
	if len(m.Layers) != 1 {
		return 0, nil, &FormatError{Code: CodeDocument, What: fmt.Sprintf("signature %s has %d layers", d.Digest, len(m.Layers))}
	}
	line, err := fetchSmall(ctx, repo.Blobs(), m.Layers[0])
	if err != nil {
		return 0, nil, err
	}
	n, err := strconv.Atoi(m.Annotations[annotationLine])
	if err != nil || n < 1 {
		n = maxSignatures + 1
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, line); err != nil {
		return 0, nil, &FormatError{Code: CodeDocument, What: fmt.Sprintf("signature %s is not JSON", d.Digest)}
	}
	if !strings.Contains(string(line), "\n") {
		return n, line, nil // as it was signed, byte for byte
	}
	return n, compact.Bytes(), nil
}

// fetchSmall reads a document of a registry, checked against its descriptor.
func fetchSmall(ctx context.Context, from interface {
	Fetch(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error)
}, d v1.Descriptor) ([]byte, error) {
	if d.Size < 0 || d.Size > maxSignatureBytes || d.Digest.Validate() != nil {
		return nil, &FormatError{Code: CodeDocument, What: fmt.Sprintf("signature %q of %d bytes", d.Digest, d.Size)}
	}
	rc, err := from.Fetch(ctx, plain(d))
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	text, err := io.ReadAll(io.LimitReader(rc, d.Size+1))
	if err != nil {
		return nil, err
	}
	if digest.FromBytes(text) != d.Digest {
		return nil, &FormatError{Code: CodeDocument, What: fmt.Sprintf("signature %s has other content", d.Digest)}
	}
	return text, nil
}
