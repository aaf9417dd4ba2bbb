package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/mensylisir/kubexm/bundle"
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

// Push sends a whole bundle to a registry, every byte as it is and each blob
// checked while it is read: blobs, then manifests, each after what it refers to,
// then the root under its tag, and last the signatures, which refer to it. What
// the registry holds already is not sent, so that a push that broke off goes on.
func Push(ctx context.Context, b *bundle.Bundle, to Remote, o PushOptions) (*Pushed, error) {
	repo, err := to.repository()
	if err != nil {
		return nil, err
	}
	if repo.Reference.ValidateReferenceAsTag() != nil {
		return nil, &ReferenceError{to.Reference, "a bundle is pushed under a tag"}
	}
	all, err := b.Contents()
	if err != nil {
		return nil, err
	}
	p := &pusher{bundle: b, repo: repo, sent: o.Sent, done: Pushed{Reference: to.Reference, Root: b.Root.Digest}}
	if p.sent == nil {
		p.sent = func(int64) {}
	}
	if o.Planned != nil {
		total := int64(0)
		for _, d := range all {
			total += d.Size
		}
		o.Planned(total)
	}
	g, blobs := errgroup.WithContext(ctx)
	g.SetLimit(max(o.Parallel, 1))
	for _, d := range all {
		if bundle.IsManifest(d.MediaType) {
			continue
		}
		g.Go(func() error { return p.blob(blobs, d) })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for _, d := range all {
		if bundle.IsManifest(d.MediaType) {
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
	bundle *bundle.Bundle
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
	text, err := p.read(d)
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

// read gives the bytes of a manifest, which are checked as they are read.
func (p *pusher) read(d v1.Descriptor) ([]byte, error) {
	rc, _, err := p.bundle.Blob(d.Digest.String())
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(rc)
	return text, errors.Join(err, rc.Close())
}

// document is a small blob that is made here.
type document struct {
	descriptor v1.Descriptor
	bytes      []byte
}

func newDocument(mediaType string, b []byte) document {
	return document{bytes: b, descriptor: v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(b), Size: int64(len(b))}}
}

// signatures sends each line of the signature slot as an artifact that refers
// to the root.
func (p *pusher) signatures(ctx context.Context) error {
	lines, err := p.bundle.Signatures()
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
		text, err := json.Marshal(m)
		if err != nil {
			return err
		}
		text = append(text, '\n')
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
