package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/transfer"
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
	Client             *http.Client // with the site's CA; nil has the system's
	Username, Password string
	Credential         auth.CredentialFunc // where Username is empty; nil asks as nobody
	UserAgent          string
	PlainHTTP          bool
}

// Options says how Fill works.
type Options struct {
	Parallel int               // blobs sent at once; at least 1
	Sent     func(bytes int64) // told how many bytes went since the last call; may be nil

	// Narrow has an index that the registry refuses, because it names platforms
	// that are not there, sent with the others alone. Its digest is another then:
	// Seeded.Narrowed says which.
	Narrow bool
}

// Seeded counts what Fill did.
type Seeded struct {
	Images  int   `json:"images"`  // that are now complete and tagged
	Blobs   int   `json:"blobs"`   // that were sent
	Bytes   int64 `json:"bytes"`   // of these
	Mounted int   `json:"mounted"` // blobs that the registry took from another of its repositories
	Held    int   `json:"held"`    // blobs and manifests that the registry held already

	// Narrowed is for Mapper.Digests: of the images whose index was narrowed.
	Narrowed map[string]string `json:"-"`
}

// seed sends images. All blobs go before any manifest of the same image, and its tag
// goes last.
func (s *seeder) seed(ctx context.Context, images []manifest.ImagePin) error {
	g, blobs := errgroup.WithContext(ctx)
	g.SetLimit(max(s.o.Parallel, 1))
	trees := make([][]v1.Descriptor, len(images))
	for i, im := range images {
		tree, err := s.src.Tree(im)
		if err != nil {
			return errors.Join(err, g.Wait())
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
		return err
	}
	m, manifests := errgroup.WithContext(ctx)
	m.SetLimit(max(s.o.Parallel, 1))
	for i, im := range images {
		m.Go(func() error { return s.manifests(manifests, im, trees[i]) })
	}
	return m.Wait()
}

// seeder is one Fill at work.
type seeder struct {
	target Target
	client *auth.Client
	src    Source
	o      Options

	mu    sync.Mutex
	locks map[string]*sync.Mutex // digest → held while the blob is on its way
	home  map[string]string      // digest → a repository that holds the blob
	known map[string]bool        // repository and digest → whether the blob is there, where that was asked
	done  Seeded

	unmounted atomic.Bool // the registry mounts nothing
}

func newSeeder(t Target, src Source, o Options) *seeder {
	hc := http.Client{Transport: transfer.Waits{}.Transport(nil)}
	if t.Client != nil {
		hc = *t.Client
	}
	inner := hc.Transport
	if r, ok := inner.(*retry.Transport); ok {
		inner = r.Base // each try is paced by itself
	}
	hc.Transport = &retry.Transport{Base: newPace(inner, o.Parallel), Policy: patience}
	guarded := t
	guarded.Client = &hc
	c := &auth.Client{Client: guarded.client(), Cache: auth.NewCache(), Credential: t.Credential}
	if t.UserAgent != "" {
		c.SetUserAgent(t.UserAgent)
	}
	if t.Username != "" {
		c.Credential = auth.StaticCredential(t.Host, auth.Credential{Username: t.Username, Password: t.Password})
	}
	return &seeder{
		target: t, client: c, src: src, o: o,
		home: map[string]string{}, locks: map[string]*sync.Mutex{}, known: map[string]bool{},
	}
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
