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

// Standing is one image of a bundle and what a registry has of it.
type Standing struct {
	Reference string `json:"reference"` // upstream's
	Target    string `json:"target"`    // its name in the registry
	Published string `json:"published"` // upstream's digest, as the bundle has it
	// Digest is what Target names there: the published one, or that of an index
	// with the bundle's platforms alone, where the registry takes no other. Empty
	// while the image is not there.
	Digest string `json:"digest,omitempty"`
	// Was is what Target named before, where that was another image.
	Was  string `json:"was,omitempty"`
	Held bool   `json:"held"` // it was there already, whole
}

// Narrowed tells whether the registry has an index of its own for the image:
// what names the image by its published digest does not find it.
func (s Standing) Narrowed() bool { return s.Digest != "" && s.Digest != s.Published }

// Comparison is what a registry has and lacks of some images.
type Comparison struct {
	Images []Standing // in the order they were given
	Blobs  int        // configs and layers that no repository looked at has
	Bytes  int64      // of these
	Mounts int        // that lie in another repository than the one that lacks them

	missing []manifest.ImagePin
	known   map[string]bool
	home    map[string]string
}

// Missing counts the images that are not there.
func (c *Comparison) Missing() int { return len(c.missing) }

// Compare asks t for images: for the digest that each one's name stands for, for
// its manifests, and where these are not all there for each of its blobs. It
// changes nothing. An index that an earlier Fill had to narrow counts as there.
func Compare(ctx context.Context, t Target, src Source, images []manifest.ImagePin, parallel int) (*Comparison, error) {
	c := &comparing{seeder: newSeeder(t, src, Options{Parallel: parallel}), out: &Comparison{Images: make([]Standing, len(images))}}
	lacking := make([][]v1.Descriptor, len(images)) // the trees of those that are missing
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

// comparing is one Compare at work.
type comparing struct {
	*seeder
	out *Comparison
}

// image looks at one image. It gives the image's tree where not all is there.
func (c *comparing) image(ctx context.Context, im manifest.ImagePin) (Standing, []v1.Descriptor, error) {
	at := Standing{Reference: im.Reference, Published: im.Digest}
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
		return at, nil, fmt.Errorf("ask %s for %s: %w", c.target.Host, im.Reference, err)
	}
	switch d {
	case "":
		return at, tree, nil
	case im.Digest, own:
	default:
		at.Was = d
		return at, tree, nil
	}
	whole, err := c.whole(ctx, repo, tree, narrowed, d == own)
	if err != nil {
		return at, nil, fmt.Errorf("ask %s for the manifests of %s: %w", c.target.Host, im.Reference, err)
	}
	if !whole {
		return at, tree, nil
	}
	at.Digest, at.Held = d, true
	return at, nil, nil
}

// resolve gives the digest that a tag names, empty where there is no such tag.
// An image without one is there under either of its digests, or not.
func (c *comparing) resolve(ctx context.Context, repo *remote.Repository, tag, published, own string) (string, error) {
	asked := []string{tag}
	if tag == "" {
		asked = []string{published}
		if own != "" {
			asked = append(asked, own)
		}
	}
	for _, ref := range asked {
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

// whole tells whether all manifests below an image's own are there: somebody else
// may have pushed the same index with fewer platforms.
func (c *comparing) whole(ctx context.Context, repo *remote.Repository, tree []v1.Descriptor, narrowed map[string]document, narrow bool) (bool, error) {
	for _, d := range tree {
		if !bundle.IsManifest(d.MediaType) {
			continue
		}
		plain := v1.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
		if less, ok := narrowed[d.Digest.String()]; ok && narrow {
			plain = less.descriptor
		}
		if there, err := repo.Manifests().Exists(ctx, plain); err != nil || !there {
			return false, err
		}
	}
	return true, nil
}

// blobs asks which blobs of the missing images are there, and counts the others.
func (c *comparing) blobs(ctx context.Context, images []manifest.ImagePin, lacking [][]v1.Descriptor) error {
	var mu sync.Mutex
	sizes := map[digest.Digest]int64{} // of blobs that some repository lacks
	lacks := 0
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(max(c.o.Parallel, 1))
	asked := map[string]bool{}
	for i, tree := range lacking {
		repo, _, err := c.repository(images[i].Reference)
		if err != nil {
			return errors.Join(err, g.Wait())
		}
		for _, d := range tree {
			plain := v1.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
			if bundle.IsManifest(d.MediaType) || asked[place(repo, plain)] {
				continue
			}
			asked[place(repo, plain)] = true
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

// Fill sends what c found to be missing, and gives every image as it stands then. All
// blobs of an image go before its manifests, and its tag goes last: an image whose tag
// names it is whole, whenever Fill was cut off.
func Fill(ctx context.Context, t Target, src Source, c *Comparison, o Options) (Seeded, []Standing, error) {
	s := newSeeder(t, src, o)
	s.known, s.home = maps.Clone(c.known), maps.Clone(c.home)
	if err := s.seed(ctx, c.missing); err != nil {
		return s.done, nil, err
	}
	m := t.Mapper
	m.Digests = s.done.Narrowed
	out := make([]Standing, len(c.Images))
	for i, at := range c.Images {
		if !at.Held {
			repository, _, err := m.Repository(at.Reference)
			if err != nil {
				return s.done, nil, err
			}
			at.Digest = at.Published
			if own := m.Digests[Place(repository, at.Published)]; own != "" {
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
