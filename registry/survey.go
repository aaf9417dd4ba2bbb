package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/transfer"
	"github.com/mensylisir/kubexm/manifest"
)

// SurveyResult is the content of a registry.
type SurveyResult struct {
	Images []manifest.InventoryImage
	Layers map[string]string // digest → a repository that has it
}

// The limits of a survey, far above the contents of one site's registry.
const (
	maxRepositories = 10_000
	maxPages        = 2_000 // of one listing
	maxTags         = 100_000
	maxSurveyed     = 16 << 20 // bytes of a manifest
)

// Survey lists the contents of a registry: for every known image and every image in the
// catalog, the digest of the tag, and which of its layers exist. A catalog that cannot be read
// is skipped.
func Survey(ctx context.Context, t Target, known []manifest.ImagePin, parallel int) (*SurveyResult, error) {
	s := &survey{seeder: newSeeder(t, nil, Options{Parallel: parallel}), out: &SurveyResult{Layers: map[string]string{}}, queried: map[string]bool{}}
	todo := map[string]string{} // repository and tag at the site → name in the list
	for _, im := range known {
		repository, tag, err := t.Repository(im.Reference)
		if err != nil {
			return nil, err
		}
		if tag == "" {
			tag = im.Digest
		}
		todo[repository+" "+tag] = im.Reference
	}
	if err := s.catalog(ctx, todo); err != nil {
		return nil, err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(max(parallel, 1))
	for _, at := range slices.Sorted(maps.Keys(todo)) {
		g.Go(func() error {
			repository, tag, _ := strings.Cut(at, " ")
			return s.image(gctx, repository, tag, todo[at])
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	slices.SortFunc(s.out.Images, func(a, b manifest.InventoryImage) int { return strings.Compare(a.Reference, b.Reference) })
	return s.out, nil
}

// survey is the state of one Survey.
type survey struct {
	*seeder
	mu      sync.Mutex
	out     *SurveyResult
	queried map[string]bool // repository and digest of queried documents and layers
}

// catalog adds images that the registry lists and that are not known.
func (s *survey) catalog(ctx context.Context, todo map[string]string) error {
	names, err := s.repositories(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		repo, err := s.open(name)
		if err != nil {
			continue // not a valid repository name
		}
		repo.Client = transfer.Pages(s.client, maxPages)
		err = repo.Tags(ctx, "", func(tags []string) error {
			for _, tag := range tags {
				if _, ok := todo[name+" "+tag]; !ok {
					todo[name+" "+tag] = s.target.Host + "/" + name + ":" + tag
				}
			}
			if len(todo) > maxTags {
				return fmt.Errorf("more than %d images", maxTags)
			}
			return nil
		})
		if err != nil && !closed(err) {
			return fmt.Errorf("tags of %s: %w", name, err)
		}
	}
	return nil
}

// image adds one tag, with everything that it refers to.
func (s *survey) image(ctx context.Context, repository, tag, listed string) error {
	repo, err := s.open(repository)
	if err != nil {
		return err
	}
	d, err := repo.Resolve(ctx, tag)
	if errors.Is(err, errdef.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("query %s for %s: %w", s.target.Host, listed, err)
	}
	if err := s.document(ctx, repo, d, 0); err != nil {
		return fmt.Errorf("%s: %w", listed, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.Images = append(s.out.Images, manifest.InventoryImage{Reference: listed, Digest: d.Digest.String()})
	return nil
}

// first reports whether a repository is queried for d for the first time.
func (s *survey) first(repo *remote.Repository, d v1.Descriptor) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := repo.Reference.Repository + " " + d.Digest.String()
	was := s.queried[key]
	s.queried[key] = true
	return !was
}

// document follows a manifest or an index. Missing platforms are not an error: an index lists
// all of upstream's platforms.
func (s *survey) document(ctx context.Context, repo *remote.Repository, d v1.Descriptor, depth int) error {
	if depth > 4 || d.Digest.Validate() != nil || d.Size > maxSurveyed || !bundle.IsManifest(d.MediaType) || !s.first(repo, d) {
		return nil
	}
	text, err := content.FetchAll(ctx, repo.Manifests(), d)
	if errors.Is(err, errdef.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("manifest %s: %w", d.Digest, err)
	}
	var m struct {
		Manifests, Layers []v1.Descriptor
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("manifest %s: %w", d.Digest, err)
	}
	for _, c := range m.Manifests {
		if err := s.document(ctx, repo, c, depth+1); err != nil {
			return err
		}
	}
	for _, l := range m.Layers {
		if err := s.layer(ctx, repo, l); err != nil {
			return err
		}
	}
	return nil
}

func (s *survey) layer(ctx context.Context, repo *remote.Repository, d v1.Descriptor) error {
	s.mu.Lock()
	_, known := s.out.Layers[d.Digest.String()]
	s.mu.Unlock()
	if known || d.Digest.Validate() != nil || !s.first(repo, d) {
		return nil
	}
	has, err := repo.Blobs().Exists(ctx, v1.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size})
	if err != nil {
		return fmt.Errorf("layer %s: %w", d.Digest, err)
	}
	if has {
		s.mu.Lock()
		s.out.Layers[d.Digest.String()] = repo.Reference.Repository
		s.mu.Unlock()
	}
	return nil
}
