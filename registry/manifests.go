package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/transfer"
	"github.com/mensylisir/kubexm/manifest"
)

// manifests sends the manifests of im, each after the manifests that it refers to, and tags the
// last one, the manifest or index of the image.
func (s *seeder) manifests(ctx context.Context, im manifest.ImagePin, tree []v1.Descriptor) error {
	repo, tag, err := s.repository(im.Reference)
	if err != nil {
		return err
	}
	var narrowed map[string]document
	if s.o.Narrow {
		if narrowed, err = narrow(s.src, tree); err != nil {
			return fmt.Errorf("%s: %w", im.Reference, err)
		}
	}
	refused := false // an index of this image: indexes that contain it must refer to its narrowed form
	for _, d := range tree {
		if !bundle.IsManifest(d.MediaType) {
			continue
		}
		at := ""
		if d.Digest.String() == im.Digest {
			at = tag
		}
		less, sparse := narrowed[d.Digest.String()]
		if !sparse || !refused {
			err = s.manifest(ctx, repo, v1.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}, at)
		}
		if sparse && (refused || refusedContent(err)) {
			if err, refused = s.instead(ctx, repo, less, at, err), true; err == nil {
				s.narrowed(repo, d, less)
			}
		}
		if err != nil {
			return fmt.Errorf("send manifest %s of %s: %w", d.Digest, im.Reference, err)
		}
	}
	s.count(func(n *FillResult) { n.Images++ })
	return nil
}

func (s *seeder) manifest(ctx context.Context, repo *remote.Repository, d v1.Descriptor, tag string) error {
	rc, _, err := s.src.Blob(d.Digest.String())
	if err != nil {
		return err
	}
	defer rc.Close()
	return transfer.Sparse(d, put(ctx, repo, d, rc, tag))
}

// instead sends a narrowed index; err is the registry's error for the published one.
func (s *seeder) instead(ctx context.Context, repo *remote.Repository, less document, tag string, err error) error {
	second := put(ctx, repo, less.descriptor, bytes.NewReader(less.text), tag)
	if second != nil && err != nil {
		return fmt.Errorf("%w; an index with only the platforms of the bundle was rejected as well: %w", err, second)
	}
	return second
}

func (s *seeder) narrowed(repo *remote.Repository, d v1.Descriptor, less document) {
	s.count(func(n *FillResult) {
		if n.Narrowed == nil {
			n.Narrowed = map[string]string{}
		}
		n.Narrowed[DigestKey(repo.Reference.Repository, d.Digest.String())] = less.descriptor.Digest.String()
	})
}

// put sends a document, with a tag unless tag is "".
func put(ctx context.Context, repo *remote.Repository, d v1.Descriptor, text io.Reader, tag string) error {
	if tag != "" {
		return repo.Manifests().PushReference(ctx, d, text, tag)
	}
	return repo.Manifests().Push(ctx, d, text)
}

// refusedContent reports whether a registry rejects a document because of its content. Products
// use many codes for this (400 MANIFEST_BLOB_UNKNOWN, 400 BLOB_UNKNOWN, 400 MANIFEST_INVALID,
// 404 NOT_FOUND, 422). Therefore only codes that certainly have another cause are excluded.
func refusedContent(err error) bool {
	var r *errcode.ErrorResponse
	if !errors.As(err, &r) || r.StatusCode < 400 || r.StatusCode >= 500 {
		return false
	}
	switch r.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusRequestTimeout,
		http.StatusRequestEntityTooLarge, http.StatusTooManyRequests:
		return false
	}
	return true
}
