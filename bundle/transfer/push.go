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

// typeSignature is the artifact type of a signature that refers to a root. Its one layer is
// a Sigstore bundle.
const typeSignature = "application/vnd.dev.sigstore.bundle.v0.3+json"

// annotationLine is the annotation with a signature's line number in the signature slot.
const annotationLine = "io.kubexm.signature.line"

// PushOptions are the options of Push.
type PushOptions struct {
	Parallel int               // blobs sent concurrently; at least 1
	Sent     func(bytes int64) // receives the number of bytes sent since the last call; may be nil
	// Planned, if set, receives the total number of bytes, including blobs that the
	// registry has.
	Planned func(bytes int64)
}

// PushResult is the result of a Push.
type PushResult struct {
	Reference      string        `json:"reference"`
	Root           digest.Digest `json:"root"`
	Sent           int           `json:"sent"` // blobs and manifests
	Bytes          int64         `json:"bytes"`
	AlreadyPresent int           `json:"held"` // blobs and manifests that the registry already had
	Signatures     int           `json:"signatures"`
}

// Push sends a complete bundle to a registry. Every blob is checked while it is read. The
// order is: blobs, manifests (each after what it refers to), the root with its tag, and
// then the signatures, which refer to the root. What the registry already has is not sent,
// so an interrupted push can be continued.
func Push(ctx context.Context, b *bundle.Bundle, to Remote, o PushOptions) (*PushResult, error) {
	repo, err := to.repository()
	if err != nil {
		return nil, err
	}
	if repo.Reference.ValidateReferenceAsTag() != nil {
		return nil, &ReferenceError{to.Reference, "a bundle must be pushed with a tag"}
	}
	all, err := b.Contents()
	if err != nil {
		return nil, err
	}
	p := &pusher{bundle: b, repo: repo, sent: o.Sent, done: PushResult{Reference: to.Reference, Root: b.Root.Digest}}
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

// pusher is the state of one Push.
type pusher struct {
	bundle *bundle.Bundle
	repo   *remote.Repository
	sent   func(int64)

	mu   sync.Mutex
	done PushResult
}

func (p *pusher) count(d v1.Descriptor, held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if held {
		p.done.AlreadyPresent++
		p.sent(d.Size)
		return
	}
	p.done.Sent++
	p.done.Bytes += d.Size
}

// plain returns d without the annotations and types that a parent adds.
func plain(d v1.Descriptor) v1.Descriptor {
	return v1.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
}

func (p *pusher) blob(ctx context.Context, d v1.Descriptor) error {
	held, err := p.repo.Blobs().Exists(ctx, plain(d))
	if err != nil {
		return fmt.Errorf("query %s for %s: %w", p.repo.Reference.Registry, d.Digest, err)
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

// manifest sends a manifest or an index. The root is sent last and with its tag, so that a
// tag always refers to a complete bundle.
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

// read returns the content of a manifest, checked while it is read.
func (p *pusher) read(d v1.Descriptor) ([]byte, error) {
	rc, _, err := p.bundle.Blob(d.Digest.String())
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(rc)
	return text, errors.Join(err, rc.Close())
}

// document is a small generated blob.
type document struct {
	descriptor v1.Descriptor
	bytes      []byte
}

func newDocument(mediaType string, b []byte) document {
	return document{bytes: b, descriptor: v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(b), Size: int64(len(b))}}
}

// signatures sends each line of the signature slot as an artifact that refers to the root.
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
