package fetch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/manifest"
)

// PinImage resolves im's reference. It sets digest, size and media type of the image, and
// of the manifest for each of platforms; of a platform only operating system and
// architecture are used. If im already has a digest and the registry returns another, the
// error is a *DigestError. An image without one of the platforms is an error. The manifests
// stay in the cache.
func (c *Client) PinImage(ctx context.Context, im manifest.ImagePin, platforms []manifest.Platform) (manifest.ImagePin, error) {
	wanted := machines(platforms)
	if len(wanted) == 0 {
		return im, errors.New("no platform is selected")
	}
	r, err := c.repository(im.Reference)
	if err != nil {
		return im, err
	}
	root, err := r.resolve(ctx)
	if err != nil {
		return im, err
	}
	if im.Digest != "" && im.Digest != root.digest.String() {
		return im, &DigestError{Name: im.Reference, Address: im.Reference, Target: r.target(r.identity), Want: im.Digest, Got: root.digest.String()}
	}
	if im.Trust == "" {
		im.Trust = manifest.FromContent
		if r.byDigest() {
			im.Trust = manifest.FromConfig
		}
	}
	offers, err := (&search{repository: r}).offers(ctx, root, 0)
	if err != nil {
		return im, err
	}
	im.MediaType, im.Digest, im.Size = root.mediaType, root.digest.String(), int64(len(root.bytes))
	im.Platforms = nil
	for _, want := range wanted {
		chosen, err := choose(want, offers)
		if err != nil {
			return im, err
		}
		m, err := r.document(ctx, chosen.descriptor)
		if err != nil {
			return im, err
		}
		p := manifest.PlatformImage{Platform: want, MediaType: m.mediaType, Digest: m.digest.String(), Size: int64(len(m.bytes))}
		for _, part := range m.parts() {
			p.Content += part.Size
		}
		im.Platforms = append(im.Platforms, p)
	}
	return im, nil
}

// resolve reads the document that r's tag or digest currently refers to.
func (r *repository) resolve(ctx context.Context) (*document, error) {
	if want, err := digest.Parse(r.identity); err == nil {
		b, served, err := r.fetchDocument(ctx, want, -1)
		if err != nil {
			return nil, err
		}
		return r.parsed(ctx, b, served)
	}
	b, served, err := r.get(ctx, r.identity)
	if err != nil {
		return nil, err
	}
	return r.parsed(ctx, b, served)
}

func (r *repository) parsed(ctx context.Context, b []byte, served string) (*document, error) {
	d, err := parseDocument(b, served)
	if err != nil {
		return nil, err
	}
	return d, r.store(ctx, d)
}

// document reads the manifest or index of desc, from the cache if it is there, and checks
// it against desc.
func (r *repository) document(ctx context.Context, desc ocispec.Descriptor) (*document, error) {
	if desc.Size > documentBytes {
		return nil, fmt.Errorf("manifest %s has %d bytes, more than the %d that registries accept", desc.Digest, desc.Size, documentBytes)
	}
	b, err := r.client.cache.read(desc.Digest.Encoded(), desc.Size)
	served := desc.MediaType
	if err != nil {
		if b, served, err = r.fetchDocument(ctx, desc.Digest, desc.Size); err != nil {
			return nil, err
		}
	}
	d, err := parseDocument(b, served)
	if err == nil && desc.MediaType != "" && d.mediaType != desc.MediaType {
		err = fmt.Errorf("manifest %s has the media type %s, its descriptor states %s", desc.Digest, d.mediaType, desc.MediaType)
	}
	if err != nil {
		return nil, err
	}
	return d, r.store(ctx, d)
}

// fetchDocument reads the manifest or index with a digest; size is -1 if unknown. Wrong
// content is requested a second time, as for a layer.
func (r *repository) fetchDocument(ctx context.Context, want digest.Digest, size int64) ([]byte, string, error) {
	for again := false; ; again = true {
		b, served, err := r.get(ctx, want.String())
		if err != nil {
			return nil, "", err
		}
		if err = r.same(b, want, size); err == nil || again {
			return b, served, err
		}
		r.client.log.InfoContext(ctx, "starting a download over", "name", r.address, "reason", err)
	}
}

// same returns an error if b does not match a digest and a size.
func (r *repository) same(b []byte, want digest.Digest, size int64) error {
	if got := digest.FromBytes(b); got != want {
		return &DigestError{Name: r.address, Address: r.address, Target: r.target(want.String()), Want: want.String(), Got: got.String()}
	}
	if size >= 0 && int64(len(b)) != size {
		return &SizeError{Name: r.address, Address: r.address, Target: r.target(want.String()), Want: size, Got: int64(len(b))}
	}
	return nil
}

func (r *repository) store(ctx context.Context, d *document) error {
	return r.client.cache.Put(ctx, d.digest.Encoded(), int64(len(d.bytes)), bytes.NewReader(d.bytes))
}

// read returns the checked content of a small blob; a corrupt one is discarded.
func (c *Cache) read(hexDigest string, size int64) ([]byte, error) {
	if !c.Has(hexDigest, size) {
		return nil, errors.New("not in the cache")
	}
	f, err := c.Open(hexDigest)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	b, err := io.ReadAll(io.LimitReader(f, size))
	if err != nil {
		return nil, err
	}
	if digest.FromBytes(b).Encoded() != hexDigest {
		return nil, errors.Join(errors.New("corrupt in the cache"), c.Discard(hexDigest))
	}
	return b, nil
}

// configBytes is the maximum size of an image config that is read.
const configBytes = 8 << 20

// platformOf returns the platform in an image's config; empty if the config is not one of
// an image.
func (r *repository) platformOf(ctx context.Context, m *document) (*ocispec.Platform, error) {
	var p ocispec.Platform
	if m.config.Size > configBytes {
		return &p, nil
	}
	if err := r.blob(ctx, m.parts()[0]); err != nil {
		return nil, err
	}
	b, err := r.client.cache.read(m.config.Digest.Encoded(), m.config.Size)
	if err != nil {
		return nil, fmt.Errorf("config %s: %w", m.config.Digest, err)
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return &ocispec.Platform{}, nil
	}
	return &p, nil
}
