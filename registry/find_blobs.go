package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/mensylisir/kubexm/bundle/transfer"
)

// Find searches blobs in a registry: first in the repositories of the images that each blob
// belongs to (wanted), then in those of others, then in all repositories of the catalog. It
// returns a repository for each blob that it finds.
func Find(ctx context.Context, t Target, wanted map[string][]string, others []string, parallel int) (map[string]string, error) {
	s := newSeeder(t, nil, Options{Parallel: parallel})
	names := func(references []string) ([]string, error) {
		var out []string
		for _, ref := range references {
			name, _, err := t.Repository(ref)
			if err != nil {
				return nil, err
			}
			out = append(out, name)
		}
		return out, nil
	}
	rest, err := names(others)
	if err != nil {
		return nil, err
	}
	listed, err := s.repositories(ctx)
	if err != nil {
		return nil, err
	}
	rest = append(rest, listed...)
	var mu sync.Mutex
	found := map[string]string{}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(max(parallel, 1))
	for d, references := range wanted {
		own, err := names(references)
		if err != nil {
			return nil, err
		}
		g.Go(func() error {
			at, err := s.find(gctx, d, append(own, rest...))
			mu.Lock()
			defer mu.Unlock()
			if at != "" {
				found[d] = at
			}
			return err
		})
	}
	return found, g.Wait()
}

// find queries one repository after the other, each once.
func (s *seeder) find(ctx context.Context, d string, names []string) (string, error) {
	queried := map[string]bool{}
	for _, name := range names {
		if queried[name] {
			continue
		}
		queried[name] = true
		repo, err := s.open(name)
		if err != nil {
			continue // not a valid repository name
		}
		_, err = repo.Blobs().Resolve(ctx, d)
		if err == nil {
			return name, nil
		}
		if !errors.Is(err, errdef.ErrNotFound) {
			return "", fmt.Errorf("query %s for %s: %w", s.target.Host, d, err)
		}
	}
	return "", nil
}

// Tagged returns the digest of a reference's tag in a registry; "" if there is no such tag, or
// if the reference has no tag.
func Tagged(ctx context.Context, t Target, ref string) (string, error) {
	repo, tag, err := newSeeder(t, nil, Options{}).repository(ref)
	if err != nil || tag == "" {
		return "", err
	}
	d, err := repo.Resolve(ctx, tag)
	if errors.Is(err, errdef.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("query %s for %s: %w", t.Host, ref, err)
	}
	return d.Digest.String(), nil
}

// Open reads a blob from a repository of the site. The content is not verified: the caller must
// compare it with the digest.
func Open(ctx context.Context, t Target, repository, digest string) (io.ReadCloser, error) {
	repo, err := newSeeder(t, nil, Options{}).open(repository)
	if err != nil {
		return nil, err
	}
	_, rc, err := repo.Blobs().FetchReference(ctx, digest)
	if err != nil {
		return nil, fmt.Errorf("%s of %s/%s: %w", digest, t.Host, repository, err)
	}
	return rc, nil
}

// open returns a repository by its name at the site.
func (s *seeder) open(name string) (*remote.Repository, error) {
	repo, err := remote.NewRepository(s.target.Host + "/" + name)
	if err != nil {
		return nil, fmt.Errorf("repository %s: %w", name, err)
	}
	repo.PlainHTTP, repo.Client = s.target.PlainHTTP, s.client
	return repo, nil
}

// repositories lists the registry's catalog; it is empty if the registry does not allow it.
func (s *seeder) repositories(ctx context.Context) ([]string, error) {
	reg, err := remote.NewRegistry(s.target.Host)
	if err != nil {
		return nil, err
	}
	reg.PlainHTTP, reg.Client = s.target.PlainHTTP, transfer.Pages(s.client, maxPages)
	var names []string
	err = reg.Repositories(ctx, "", func(page []string) error {
		if names = append(names, page...); len(names) > maxRepositories {
			return fmt.Errorf("more than %d repositories", maxRepositories)
		}
		return nil
	})
	if err != nil && !closed(err) {
		return nil, fmt.Errorf("catalog of %s: %w", s.target.Host, err)
	}
	slices.Sort(names)
	return names, nil
}

// closed reports whether a registry does not support a list, or does not allow access to it.
func closed(err error) bool {
	var r *errcode.ErrorResponse
	return errors.Is(err, errdef.ErrNotFound) || errors.As(err, &r) && slices.Contains([]int{
		http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
	}, r.StatusCode)
}
