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

// Source provides the content to send; *bundle.Bundle implements it.
type Source interface {
	Blob(digest string) (io.ReadCloser, int64, error)
	Tree(im manifest.ImagePin) ([]v1.Descriptor, error)
}

// MountSource is a Source that reads some of its blobs from the registry itself.
// MountRepository returns their repository; these blobs are mounted and not sent.
type MountSource interface {
	MountRepository(digest string) (repository string)
}

// Target is a site's registry with its credentials and connection settings.
type Target struct {
	Mapper
	Client             *http.Client // with the site's CA; nil uses the system's CAs
	Username, Password string
	Credential         auth.CredentialFunc // if Username is empty; nil means anonymous access
	UserAgent          string
	PlainHTTP          bool
}

// Options are the options of Fill.
type Options struct {
	Parallel int               // blobs sent in parallel; at least 1
	Sent     func(bytes int64) // called with the number of bytes sent since the last call; may be nil

	// Narrow sends an index without the platforms that are not in the bundle, if the registry
	// rejects the published index because of them. FillResult.Narrowed has its new digest.
	Narrow bool
}

// FillResult is the result of Fill.
type FillResult struct {
	Images         int   `json:"images"`  // images that are now complete and tagged
	Blobs          int   `json:"blobs"`   // blobs that were sent
	Bytes          int64 `json:"bytes"`   // bytes of these blobs
	Mounted        int   `json:"mounted"` // blobs that the registry mounted from another of its repositories
	AlreadyPresent int   `json:"held"`    // blobs that the registry already had

	// Narrowed is the value of Mapper.Digests for images whose index was narrowed.
	Narrowed map[string]string `json:"-"`
}

// seed sends images. All blobs of an image are sent before its manifests, and its tag is last.
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

// seeder is the state of one Fill.
type seeder struct {
	target Target
	client *auth.Client
	src    Source
	o      Options

	mu    sync.Mutex
	locks map[string]chan struct{} // digest → full while the blob is sent
	home  map[string]string        // digest → a repository that has the blob
	known map[string]bool          // repository and digest → whether the blob exists, if it was queried
	done  FillResult

	unmounted atomic.Bool // the registry does not support mounts
}

func newSeeder(t Target, src Source, o Options) *seeder {
	hc := http.Client{Transport: transfer.Timeouts{}.Transport(nil)}
	if t.Client != nil {
		hc = *t.Client
	}
	inner := hc.Transport
	if r, ok := inner.(*retry.Transport); ok {
		inner = r.Base // each attempt is paced separately
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
		home: map[string]string{}, locks: map[string]chan struct{}{}, known: map[string]bool{},
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

// lock waits until no other goroutine sends this blob, and returns the function that unlocks it. The
// error is that of a context that ended first.
func (s *seeder) lock(ctx context.Context, digest string) (func(), error) {
	s.mu.Lock()
	l := s.locks[digest]
	if l == nil {
		l = make(chan struct{}, 1)
		s.locks[digest] = l
	}
	s.mu.Unlock()
	select {
	case l <- struct{}{}:
		return func() { <-l }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *seeder) homeOf(digest string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.src.(MountSource); ok && s.home[digest] == "" {
		return h.MountRepository(digest)
	}
	return s.home[digest]
}

func (s *seeder) count(f func(*FillResult)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.done)
}
