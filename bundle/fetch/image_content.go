package fetch

import (
	"context"
	"fmt"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/manifest"
)

// ImageContent lists all blobs of im's pin, each once: the index, nested indexes above a
// pinned manifest, those manifests, their configs and their layers, in this order. It
// fetches the documents into the cache, checked; FetchContent fetches the rest. Content of
// other platforms in an index is not listed.
func (c *Client) ImageContent(ctx context.Context, im manifest.ImagePin) ([]Content, error) {
	r, err := c.repository(im.Reference)
	if err != nil {
		return nil, err
	}
	d, err := digest.Parse(im.Digest)
	if err != nil || d.Algorithm() != digest.SHA256 {
		return nil, fmt.Errorf("not pinned: %q is not a sha256 digest", im.Digest)
	}
	root, err := r.document(ctx, ocispec.Descriptor{MediaType: im.MediaType, Digest: d, Size: im.Size})
	if err != nil {
		return nil, err
	}
	list := newContents(root.content())
	var images []*document
	for _, p := range im.Platforms {
		path := []*document{root}
		if p.Digest != im.Digest {
			if path, err = (&search{repository: r}).path(ctx, root, digest.Digest(p.Digest), 0); err != nil {
				return nil, err
			}
		}
		if path == nil || path[len(path)-1].index() {
			return nil, fmt.Errorf("index %s does not contain the manifest %s that the lock pins for %s; lock again", im.Digest, p.Digest, p.Platform)
		}
		for i, doc := range path {
			at := manifest.Platform{}
			if i == len(path)-1 {
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

// contents collects blobs, each digest once.
type contents struct {
	all []Content
	at  map[string]int
}

func newContents(root Content) *contents {
	return &contents{all: []Content{root}, at: map[string]int{root.Digest: 0}}
}

// add adds c for platform p; a blob of two platforms has no platform.
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
		return fmt.Errorf("%s is listed with both %d and %d bytes", c.Digest, had.Size, c.Size)
	}
	switch {
	case i > 0 && had.Platform != p:
		had.Platform = manifest.Platform{}
	case c.Role == ManifestRole:
		had.Platform = p // an image without an index is its own root
	}
	return nil
}

// FetchContent fetches one blob of im into the cache, checked against its digest and size.
// A cached blob needs no network.
func (c *Client) FetchContent(ctx context.Context, im manifest.ImagePin, ct Content) error {
	d, err := digest.Parse(ct.Digest)
	if err != nil || d.Algorithm() != digest.SHA256 {
		return fmt.Errorf("%q is not a sha256 digest", ct.Digest)
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

// blob downloads a config or layer. Its key is its digest, so that blobs that several
// images share are downloaded once, and any of these downloads can be continued.
func (r *repository) blob(ctx context.Context, ct Content) error {
	d := digest.Digest(ct.Digest)
	done := func() bool { return r.client.cache.Has(d.Encoded(), ct.Size) }
	if done() {
		return nil
	}
	return r.client.download(ctx, r.blobJob(ct), done, (*part).keep)
}

func (r *repository) blobJob(ct Content) *job {
	return &job{
		name: r.address, address: r.address + " " + ct.Digest, target: r.target(ct.Digest),
		sha256: digest.Digest(ct.Digest).Encoded(), size: ct.Size, open: r.open(ct.Digest),
	}
}
