package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/manifest"
)

// ImageStatus is the state of one image of a bundle in a registry.
type ImageStatus struct {
	Reference string `json:"reference"` // upstream's
	Target    string `json:"target"`    // its name in the registry
	Published string `json:"published"` // upstream's digest, as in the bundle
	// Digest is the digest of Target in the registry: the published one, or that of an index
	// with only the bundle's platforms, if the registry rejects the published one. It is empty
	// if the image does not exist.
	Digest string `json:"digest,omitempty"`
	// Previous is the previous digest of Target, if it was another image.
	Previous       string `json:"was,omitempty"`
	AlreadyPresent bool   `json:"held"` // the complete image already existed
}

// Narrowed reports whether the registry has an index with another digest for the image.
// References by the published digest do not find it.
func (s ImageStatus) Narrowed() bool { return s.Digest != "" && s.Digest != s.Published }

// Comparison lists which of some images a registry has and lacks.
type Comparison struct {
	Images []ImageStatus // in the order of Compare's images
	Blobs  int           // configs and layers that none of the queried repositories has
	Bytes  int64         // bytes of these blobs
	Mounts int           // blobs that exist in another repository than the one that lacks them

	missing []manifest.ImagePin
	known   map[string]bool
	home    map[string]string
}

// Missing returns the number of images that the registry lacks.
func (c *Comparison) Missing() int { return len(c.missing) }

// Compare queries t for images: the digest of each name, the manifests, and the blobs of images
// whose manifests are incomplete. It changes nothing. An index that an earlier Fill narrowed
// counts as existing.
func Compare(ctx context.Context, t Target, src Source, images []manifest.ImagePin, parallel int) (*Comparison, error) {
	c := &comparing{seeder: newSeeder(t, src, Options{Parallel: parallel}), out: &Comparison{Images: make([]ImageStatus, len(images))}}
	lacking := make([][]v1.Descriptor, len(images)) // the trees of missing images
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(max(parallel, 1))
	for i, im := range images {
		g.Go(func() (err error) {
			c.out.Images[i], lacking[i], err = c.image(gctx, im)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for i, im := range images {
		if lacking[i] != nil {
			c.out.missing = append(c.out.missing, im)
		}
	}
	if err := c.blobs(ctx, images, lacking); err != nil {
		return nil, err
	}
	c.out.known, c.out.home = c.known, c.home
	return c.out, nil
}

// comparing is the state of one Compare.
type comparing struct {
	*seeder
	out *Comparison
}

// image compares one image. It returns the image's tree if the registry lacks a part of it.
func (c *comparing) image(ctx context.Context, im manifest.ImagePin) (ImageStatus, []v1.Descriptor, error) {
	at := ImageStatus{Reference: im.Reference, Published: im.Digest}
	var err error
	if at.Target, err = c.target.Map(im.Reference); err != nil {
		return at, nil, err
	}
	tree, err := c.src.Tree(im)
	if err != nil {
		return at, nil, err
	}
	narrowed, err := narrow(c.src, tree)
	if err != nil {
		return at, nil, fmt.Errorf("%s: %w", im.Reference, err)
	}
	repo, tag, err := c.repository(im.Reference)
	if err != nil {
		return at, nil, err
	}
	own := ""
	if less, ok := narrowed[im.Digest]; ok {
		own = less.descriptor.Digest.String()
	}
	d, err := c.resolve(ctx, repo, tag, im.Digest, own)
	if err != nil {
		return at, nil, fmt.Errorf("query %s for %s: %w", c.target.Host, im.Reference, err)
	}
	switch d {
	case "":
		return at, tree, nil
	case im.Digest, own:
	default:
		at.Previous = d
		return at, tree, nil
	}
	complete, err := c.complete(ctx, repo, tree, narrowed, d == own)
	if err != nil {
		return at, nil, fmt.Errorf("query %s for the manifests of %s: %w", c.target.Host, im.Reference, err)
	}
	if !complete {
		return at, tree, nil
	}
	at.Digest, at.AlreadyPresent = d, true
	return at, nil, nil
}

// resolve returns the digest of a tag, or "" if there is no such tag. An image without a tag is
// looked up by its published digest and by its narrowed one.
func (c *comparing) resolve(ctx context.Context, repo *remote.Repository, tag, published, own string) (string, error) {
	queried := []string{tag}
	if tag == "" {
		queried = []string{published}
		if own != "" {
			queried = append(queried, own)
		}
	}
	for _, ref := range queried {
		d, err := repo.Resolve(ctx, ref)
		if err == nil {
			return d.Digest.String(), nil
		}
		if !errors.Is(err, errdef.ErrNotFound) {
			return "", err
		}
	}
	return "", nil
}

// complete reports whether all manifests of an image exist. The same index may have been pushed
// with fewer platforms.
func (c *comparing) complete(ctx context.Context, repo *remote.Repository, tree []v1.Descriptor, narrowed map[string]document, narrow bool) (bool, error) {
	for _, d := range tree {
		if !bundle.IsManifest(d.MediaType) {
			continue
		}
		plain := v1.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
		if less, ok := narrowed[d.Digest.String()]; ok && narrow {
			plain = less.descriptor
		}
		if exists, err := repo.Manifests().Exists(ctx, plain); err != nil || !exists {
			return false, err
		}
	}
	return true, nil
}

// blobs queries the registry for the blobs of missing images, and counts those that it lacks.
func (c *comparing) blobs(ctx context.Context, images []manifest.ImagePin, lacking [][]v1.Descriptor) error {
	var mu sync.Mutex
	sizes := map[digest.Digest]int64{} // of blobs that some repository lacks
	lacks := 0
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(max(c.o.Parallel, 1))
	queried := map[string]bool{}
	for i, tree := range lacking {
		repo, _, err := c.repository(images[i].Reference)
		if err != nil {
			return errors.Join(err, g.Wait())
		}
		for _, d := range tree {
			plain := v1.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
			if bundle.IsManifest(d.MediaType) || queried[place(repo, plain)] {
				continue
			}
			queried[place(repo, plain)] = true
			g.Go(func() error {
				held, err := c.holds(gctx, repo, plain)
				if err != nil || held {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				sizes[d.Digest], lacks = d.Size, lacks+1
				return nil
			})
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for d, n := range sizes {
		if c.home[d.String()] == "" {
			c.out.Blobs++
			c.out.Bytes += n
		}
	}
	c.out.Mounts = lacks - c.out.Blobs
	return nil
}

// Fill sends the images that c lists as missing, and returns the new state of every image. All
// blobs of an image are sent before its manifests, and its tag is last: a tagged image is
// complete, even if Fill was interrupted.
func Fill(ctx context.Context, t Target, src Source, c *Comparison, o Options) (FillResult, []ImageStatus, error) {
	s := newSeeder(t, src, o)
	s.known, s.home = maps.Clone(c.known), maps.Clone(c.home)
	if err := s.seed(ctx, c.missing); err != nil {
		return s.done, nil, err
	}
	m := t.Mapper
	m.Digests = s.done.Narrowed
	out := make([]ImageStatus, len(c.Images))
	for i, at := range c.Images {
		if !at.AlreadyPresent {
			repository, _, err := m.Repository(at.Reference)
			if err != nil {
				return s.done, nil, err
			}
			at.Digest = at.Published
			if own := m.Digests[DigestKey(repository, at.Published)]; own != "" {
				at.Digest = own
			}
			if at.Target, err = m.Map(at.Reference); err != nil {
				return s.done, nil, err
			}
		}
		out[i] = at
	}
	return s.done, out, nil
}
