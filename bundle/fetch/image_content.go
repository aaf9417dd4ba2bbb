package fetch

import (
	"context"
	"fmt"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/manifest"
)

// ImageContent lists everything that im's pin holds, each blob once: the index,
// the indexes in it on the way to a pinned manifest, those manifests, their
// configs and their layers, in this order. The documents are brought into the
// cache for that, checked; the rest is for FetchContent. What an index names of
// other platforms is left out.
func (c *Client) ImageContent(ctx context.Context, im manifest.ImagePin) ([]Content, error) {
	r, err := c.repository(im.Reference)
	if err != nil {
		return nil, err
	}
	d, err := digest.Parse(im.Digest)
	if err != nil || d.Algorithm() != digest.SHA256 {
		return nil, fmt.Errorf("not pinned: %q is no sha256 digest", im.Digest)
	}
	root, err := r.document(ctx, ocispec.Descriptor{MediaType: im.MediaType, Digest: d, Size: im.Size})
	if err != nil {
		return nil, err
	}
	list := newContents(root.content())
	var images []*document
	for _, p := range im.Platforms {
		way := []*document{root}
		if p.Digest != im.Digest {
			if way, err = (&search{repository: r}).way(ctx, root, digest.Digest(p.Digest), 0); err != nil {
				return nil, err
			}
		}
		if way == nil || way[len(way)-1].index() {
			return nil, fmt.Errorf("index %s does not hold the manifest %s that the lock pins for %s; lock again", im.Digest, p.Digest, p.Platform)
		}
		for i, doc := range way {
			at := manifest.Platform{}
			if i == len(way)-1 {
				at = p.Platform
				images = append(images, doc)
			}
			if err := list.add(doc.content(), at); err != nil {
				return nil, err
			}
		}
	}
	for _, role := range []Role{ConfigRole, LayerRole} {
		for i, m := range images {
			for _, part := range m.parts() {
				if part.Role != role {
					continue
				}
				if err := list.add(part, im.Platforms[i].Platform); err != nil {
					return nil, err
				}
			}
		}
	}
	return list.all, nil
}

// contents collects content, each digest once.
type contents struct {
	all []Content
	at  map[string]int
}

func newContents(root Content) *contents {
	return &contents{all: []Content{root}, at: map[string]int{root.Digest: 0}}
}

// add adds c for platform p; what two platforms share belongs to neither.
func (l *contents) add(c Content, p manifest.Platform) error {
	i, twice := l.at[c.Digest]
	if !twice {
		c.Platform = p
		l.at[c.Digest] = len(l.all)
		l.all = append(l.all, c)
		return nil
	}
	had := &l.all[i]
	if had.Size != c.Size {
		return fmt.Errorf("%s has %d bytes in one place and %d in another", c.Digest, had.Size, c.Size)
	}
	switch {
	case i > 0 && had.Platform != p:
		had.Platform = manifest.Platform{}
	case c.Role == ManifestRole:
		had.Platform = p // an image without an index is its own root
	}
	return nil
}

// FetchContent brings one piece of im's content into the cache, checked against
// its digest and size. What is there already needs no network.
func (c *Client) FetchContent(ctx context.Context, im manifest.ImagePin, ct Content) error {
	d, err := digest.Parse(ct.Digest)
	if err != nil || d.Algorithm() != digest.SHA256 {
		return fmt.Errorf("%q is no sha256 digest", ct.Digest)
	}
	if c.cache.Has(d.Encoded(), ct.Size) {
		return nil
	}
	r, err := c.repository(im.Reference)
	if err != nil {
		return err
	}
	if ct.document() {
		_, err := r.document(ctx, ocispec.Descriptor{MediaType: ct.MediaType, Digest: d, Size: ct.Size})
		return err
	}
	return r.blob(ctx, ct)
}

// blob downloads a config or layer. Its key is its digest, so that what several
// images share comes once, and a download goes on wherever it broke off.
func (r *repository) blob(ctx context.Context, ct Content) error {
	d := digest.Digest(ct.Digest)
	done := func() bool { return r.client.cache.Has(d.Encoded(), ct.Size) }
	if done() {
		return nil
	}
	return r.client.download(ctx, &job{
		name: r.address, address: r.address + " " + ct.Digest, target: r.target(ct.Digest),
		sha256: d.Encoded(), size: ct.Size, open: r.open(ct.Digest),
	}, done, (*part).keep)
}
