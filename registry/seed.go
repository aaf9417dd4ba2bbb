package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/manifest"
)

// Source gives what is to be sent; *bundle.Bundle is one.
type Source interface {
	Blob(digest string) (io.ReadCloser, int64, error)
	Tree(im manifest.ImagePin) ([]v1.Descriptor, error)
}

// Homed is a Source that reads some of its blobs from the registry itself, and
// says in which repository they are: these are mounted and not sent.
type Homed interface {
	Home(digest string) (repository string)
}

// Target is a site's registry and how to speak to it.
type Target struct {
	Mapper
	Client             *http.Client // with the site's CA; nil is http.DefaultClient
	Username, Password string
	PlainHTTP          bool
}

// Options says how Seed works.
type Options struct {
	Parallel int               // blobs sent at once; at least 1
	Sent     func(bytes int64) // told how many bytes went since the last call; may be nil
}

// Seeded counts what Seed did.
type Seeded struct {
	Images int   `json:"images"` // that are now complete and tagged
	Blobs  int   `json:"blobs"`  // that were sent
	Bytes  int64 `json:"bytes"`  // of these
	Held   int   `json:"held"`   // blobs and manifests that the registry held already
}

// Missing gives the images that t lacks: those whose tag does not name the
// pinned digest. As tags go last, an image that is not missing is whole.
func Missing(ctx context.Context, t Target, images []manifest.ImagePin) ([]manifest.ImagePin, error) {
	s := newSeeder(t, nil, Options{})
	var missing []manifest.ImagePin
	for _, im := range images {
		repo, tag, err := s.repository(im.Reference)
		if err != nil {
			return nil, err
		}
		if tag == "" {
			tag = im.Digest
		}
		d, err := repo.Resolve(ctx, tag)
		switch {
		case errors.Is(err, errdef.ErrNotFound):
			missing = append(missing, im)
		case err != nil:
			return nil, fmt.Errorf("ask %s for %s: %w", t.Host, im.Reference, err)
		case d.Digest.String() != im.Digest:
			missing = append(missing, im)
		}
	}
	return missing, nil
}

// Seed sends images from src to t. All blobs go before any manifest of the same
// image, and its tag goes last.
func Seed(ctx context.Context, t Target, src Source, images []manifest.ImagePin, o Options) (Seeded, error) {
	s := newSeeder(t, src, o)
	g, blobs := errgroup.WithContext(ctx)
	g.SetLimit(max(o.Parallel, 1))
	trees := make([][]v1.Descriptor, len(images))
	for i, im := range images {
		tree, err := src.Tree(im)
		if err != nil {
			return Seeded{}, err
		}
		trees[i] = tree
		for _, d := range tree {
			if bundle.IsManifest(d.MediaType) {
				continue
			}
			g.Go(func() error { return s.blob(blobs, im, d) })
		}
	}
	if err := g.Wait(); err != nil {
		return s.done, err
	}
	m, manifests := errgroup.WithContext(ctx)
	m.SetLimit(max(o.Parallel, 1))
	for i, im := range images {
		m.Go(func() error { return s.manifests(manifests, im, trees[i]) })
	}
	err := m.Wait()
	return s.done, err
}

// seeder is one Seed at work.
type seeder struct {
	target Target
	client *auth.Client
	src    Source
	o      Options

	mu    sync.Mutex
	locks map[string]*sync.Mutex // digest → held while the blob is on its way
	home  map[string]string      // digest → a repository that holds the blob
	done  Seeded
}

func newSeeder(t Target, src Source, o Options) *seeder {
	base := t.Client
	if base == nil {
		base = &http.Client{}
	}
	hc := *base
	hc.Transport = retry.NewTransport(newPace(base.Transport, o.Parallel))
	c := &auth.Client{Client: &hc, Cache: auth.NewCache()}
	if t.Username != "" {
		c.Credential = auth.StaticCredential(t.Host, auth.Credential{Username: t.Username, Password: t.Password})
	}
	return &seeder{target: t, client: c, src: src, o: o, home: map[string]string{}, locks: map[string]*sync.Mutex{}}
}

// repository opens the site's repository of an upstream reference.
func (s *seeder) repository(ref string) (*remote.Repository, string, error) {
	name, tag, err := s.target.Repository(ref)
	if err != nil {
		return nil, "", err
	}
	repo, err := remote.NewRepository(s.target.Host + "/" + name)
	if err != nil {
		return nil, "", fmt.Errorf("repository %s: %w", name, err)
	}
	repo.PlainHTTP, repo.Client = s.target.PlainHTTP, s.client
	return repo, tag, nil
}

// blob makes sure that the repository of im holds d: it may be there, it may be
// in another repository of the registry and can be mounted, or it is sent.
func (s *seeder) blob(ctx context.Context, im manifest.ImagePin, d v1.Descriptor) error {
	repo, _, err := s.repository(im.Reference)
	if err != nil {
		return err
	}
	// A layer that two images share travels once: the second mounts it.
	defer s.lock(d.Digest.String())()
	plain := v1.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
	held, err := repo.Blobs().Exists(ctx, plain)
	if err != nil {
		return fmt.Errorf("ask %s for %s: %w", s.target.Host, d.Digest, err)
	}
	if held {
		s.count(func(n *Seeded) { n.Held++ })
		return nil
	}
	open := func() (io.ReadCloser, error) {
		rc, _, err := s.src.Blob(d.Digest.String())
		if err != nil {
			return nil, err
		}
		return &counted{ReadCloser: rc, sent: s.o.Sent}, nil
	}
	err = again(ctx, func() error {
		if from := s.homeOf(d.Digest.String()); from != "" && from != repo.Reference.Repository {
			return repo.Mount(ctx, plain, from, open) // sends it when the registry will not mount
		}
		return push(ctx, repo, plain, open)
	})
	if err != nil {
		return fmt.Errorf("send %s of %s: %w", d.Digest, im.Reference, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.home[d.Digest.String()] = repo.Reference.Repository
	s.done.Blobs++
	s.done.Bytes += d.Size
	return nil
}

func push(ctx context.Context, repo *remote.Repository, d v1.Descriptor, open func() (io.ReadCloser, error)) error {
	rc, err := open()
	if err != nil {
		return err
	}
	defer rc.Close()
	return repo.Blobs().Push(ctx, d, rc)
}

// manifests sends the manifests of im, each after what it refers to, and tags
// the last one, which is the image's own.
func (s *seeder) manifests(ctx context.Context, im manifest.ImagePin, tree []v1.Descriptor) error {
	repo, tag, err := s.repository(im.Reference)
	if err != nil {
		return err
	}
	for _, d := range tree {
		if !bundle.IsManifest(d.MediaType) {
			continue
		}
		plain := v1.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
		if err := s.manifest(ctx, repo, plain, tag, d.Digest.String() == im.Digest); err != nil {
			return fmt.Errorf("send manifest %s of %s: %w", d.Digest, im.Reference, err)
		}
	}
	s.count(func(n *Seeded) { n.Images++ })
	return nil
}

func (s *seeder) manifest(ctx context.Context, repo *remote.Repository, d v1.Descriptor, tag string, top bool) error {
	rc, _, err := s.src.Blob(d.Digest.String())
	if err != nil {
		return err
	}
	defer rc.Close()
	if top && tag != "" {
		err = repo.Manifests().PushReference(ctx, d, rc, tag)
	} else {
		err = repo.Manifests().Push(ctx, d, rc)
	}
	return bundle.Sparse(d, err)
}

// lock waits until nobody else sends this blob, and gives the unlocking.
func (s *seeder) lock(digest string) func() {
	s.mu.Lock()
	l := s.locks[digest]
	if l == nil {
		l = &sync.Mutex{}
		s.locks[digest] = l
	}
	s.mu.Unlock()
	l.Lock()
	return l.Unlock
}

func (s *seeder) homeOf(digest string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.src.(Homed); ok && s.home[digest] == "" {
		return h.Home(digest)
	}
	return s.home[digest]
}

func (s *seeder) count(f func(*Seeded)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.done)
}

// counted tells how much was read from it.
type counted struct {
	io.ReadCloser
	sent func(int64)
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if c.sent != nil {
		c.sent(int64(n))
	}
	return n, err
}
