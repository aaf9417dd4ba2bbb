package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/mensylisir/kubexm/bundle/transfer"
	"github.com/mensylisir/kubexm/manifest"
)

// blob makes sure that the repository of im contains d. It uses a blob that exists, mounts one
// of another repository of the registry, or sends it.
func (s *seeder) blob(ctx context.Context, im manifest.ImagePin, d v1.Descriptor) error {
	repo, _, err := s.repository(im.Reference)
	if err != nil {
		return err
	}
	// A layer that two images share is sent once: the second image mounts it.
	unlock, err := s.lock(ctx, d.Digest.String())
	if err != nil {
		return err
	}
	defer unlock()
	plain := v1.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
	held, err := s.holds(ctx, repo, plain)
	if err != nil {
		return err
	}
	if held {
		s.count(func(n *FillResult) { n.AlreadyPresent++ })
		return nil
	}
	read := false
	open := func() (io.ReadCloser, error) {
		read = true
		rc, _, err := s.src.Blob(d.Digest.String())
		if err != nil {
			return nil, err
		}
		return transfer.Body(rc, s.o.Sent), nil
	}
	err = retrying(ctx, func() error {
		if from := s.homeOf(d.Digest.String()); from != "" && from != repo.Reference.Repository && !s.unmounted.Load() {
			err := repo.Mount(ctx, plain, from, open) // sends the blob if the registry starts an upload instead
			if !s.refusedMount(err) {
				return err
			}
		}
		return push(ctx, repo, plain, open)
	})
	if err != nil {
		return fmt.Errorf("send %s of %s: %w", d.Digest, im.Reference, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.home[d.Digest.String()] = repo.Reference.Repository
	s.known[place(repo, plain)] = true
	if !read {
		s.done.Mounted++
		return nil
	}
	s.done.Blobs++
	s.done.Bytes += d.Size
	return nil
}

// place is the key of a blob in one repository.
func place(repo *remote.Repository, d v1.Descriptor) string {
	return repo.Reference.Repository + " " + d.Digest.String()
}

// holds reports whether a repository has a blob. It sends one request per blob.
func (s *seeder) holds(ctx context.Context, repo *remote.Repository, d v1.Descriptor) (bool, error) {
	s.mu.Lock()
	held, queried := s.known[place(repo, d)]
	s.mu.Unlock()
	if queried {
		return held, nil
	}
	held, err := repo.Blobs().Exists(ctx, d)
	if err != nil {
		return false, fmt.Errorf("query %s for %s: %w", s.target.Host, d.Digest, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[place(repo, d)] = held
	if held && s.home[d.Digest.String()] == "" {
		s.home[d.Digest.String()] = repo.Reference.Repository
	}
	return held, nil
}

// refusedMount reports whether a registry answered a mount request with an error. If the
// registry does not support mounts, no further mounts are tried.
func (s *seeder) refusedMount(err error) bool {
	var r *errcode.ErrorResponse
	if !errors.As(err, &r) || r.Method != http.MethodPost || r.StatusCode == http.StatusTooManyRequests {
		return false
	}
	switch r.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound: // for this source only
	default:
		s.unmounted.Store(true)
	}
	return true
}

func push(ctx context.Context, repo *remote.Repository, d v1.Descriptor, open func() (io.ReadCloser, error)) error {
	rc, err := open()
	if err != nil {
		return err
	}
	defer rc.Close()
	return repo.Blobs().Push(ctx, d, rc)
}
