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

// PinImage resolves im's reference and fills in the digest, size and media type
// of what it names, and those of the manifest for each of platforms, of which
// only operating system and architecture count. A digest that im has already
// must be the one that the registry gives, else a *DigestError. An image that
// lacks a platform is refused. The manifests are left in the cache.
func (c *Client) PinImage(ctx context.Context, im manifest.ImagePin, platforms []manifest.Platform) (manifest.ImagePin, error) {
	wanted := machines(platforms)
	if len(wanted) == 0 {
		return im, errors.New("no platform is wanted")
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

// resolve reads what r's tag or digest names now.
func (r *repository) resolve(ctx context.Context) (*document, error) {
	if want, err := digest.Parse(r.identity); err == nil {
		b, served, err := r.whole(ctx, want, -1)
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

// document reads the manifest or index that desc names, from the cache if it is
// there, checked against desc either way.
func (r *repository) document(ctx context.Context, desc ocispec.Descriptor) (*document, error) {
	if desc.Size > documentBytes {
		return nil, fmt.Errorf("manifest %s has %d bytes, more than the %d that registries take", desc.Digest, desc.Size, documentBytes)
	}
	b, err := r.client.cache.read(desc.Digest.Encoded(), desc.Size)
	served := desc.MediaType
	if err != nil {
		if b, served, err = r.whole(ctx, desc.Digest, desc.Size); err != nil {
			return nil, err
		}
	}
	d, err := parseDocument(b, served)
	if err == nil && desc.MediaType != "" && d.mediaType != desc.MediaType {
		err = fmt.Errorf("manifest %s is of type %s, what names it says %s", desc.Digest, d.mediaType, desc.MediaType)
	}
	if err != nil {
		return nil, err
	}
	return d, r.store(ctx, d)
}

// whole reads the manifest or index that a digest names; size is -1 where nobody
// knows it. What comes wrong is asked for once more, as a layer is.
func (r *repository) whole(ctx context.Context, want digest.Digest, size int64) ([]byte, string, error) {
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

// same tells whether b is what a digest and a size name.
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

// read gives a small blob whole and checked; one that is corrupt is discarded.
func (c *Cache) read(hexDigest string, size int64) ([]byte, error) {
	if !c.Has(hexDigest, size) {
		return nil, errors.New("not in the cache")
	}
	f, err := c.Open(hexDigest)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	b, err := io.ReadAll(io.LimitReader(f, size))
	if err != nil {
		return nil, err
	}
	if digest.FromBytes(b).Encoded() != hexDigest {
		return nil, errors.Join(errors.New("corrupt in the cache"), c.Discard(hexDigest))
	}
	return b, nil
}

// configBytes bounds an image's config where it has to be read.
const configBytes = 8 << 20

// platformOf reads for which platform an image says that it is; none where its
// config is not an image's.
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
