package fetch

import (
	"context"
	"fmt"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// maxDepth is the maximum nesting of indexes. One level is usual, two occur.
const maxDepth = 4

// isIndex reports whether a descriptor is of an index.
func isIndex(d ocispec.Descriptor) bool {
	return d.MediaType == ocispec.MediaTypeImageIndex || d.MediaType == dockerIndex
}

// isImage reports whether a descriptor is of an image's manifest.
func isImage(d ocispec.Descriptor) bool {
	return d.MediaType == ocispec.MediaTypeImageManifest || d.MediaType == dockerManifest
}

// search walks an index and the indexes in it.
type search struct {
	*repository
	documents int // number of documents read
}

// maxSearched limits the documents of one search, so that a hostile index cannot cause
// thousands of requests.
const maxSearched = 256

// child reads a document that an index lists.
func (s *search) child(ctx context.Context, d ocispec.Descriptor, depth int) (*document, error) {
	if depth >= maxDepth {
		return nil, fmt.Errorf("indexes are nested more than %d deep", maxDepth)
	}
	if s.documents++; s.documents > maxSearched {
		return nil, fmt.Errorf("more than %d manifests must be read to resolve the index", maxSearched)
	}
	return s.document(ctx, d)
}

// offers lists the images below root with their platforms: root itself, or the children of
// an index and of the indexes in it.
func (s *search) offers(ctx context.Context, root *document, depth int) ([]candidate, error) {
	if !root.index() {
		p, err := s.platformOf(ctx, root)
		if err != nil {
			return nil, err
		}
		own := ocispec.Descriptor{MediaType: root.mediaType, Digest: root.digest, Size: int64(len(root.bytes))}
		return []candidate{{own, p}}, nil
	}
	var out []candidate
	for _, d := range root.children {
		switch {
		case attestation(d) || !isIndex(d) && !isImage(d):
		case isImage(d) && d.Platform != nil:
			out = append(out, candidate{d, d.Platform})
		default: // only the document itself states its platform
			child, err := s.child(ctx, d, depth)
			if err != nil {
				return nil, err
			}
			more, err := s.offers(ctx, child, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		}
	}
	return out, nil
}

// path returns the documents from root, exclusive, to the manifest want; nil if root does
// not contain it.
func (s *search) path(ctx context.Context, root *document, want digest.Digest, depth int) ([]*document, error) {
	for _, d := range root.children {
		if d.Digest == want {
			m, err := s.child(ctx, d, depth)
			if err != nil {
				return nil, err
			}
			return []*document{m}, nil
		}
	}
	for _, d := range root.children {
		if !isIndex(d) || attestation(d) {
			continue
		}
		child, err := s.child(ctx, d, depth)
		if err != nil {
			return nil, err
		}
		rest, err := s.path(ctx, child, want, depth+1)
		if err != nil {
			return nil, err
		}
		if rest != nil {
			return append([]*document{child}, rest...), nil
		}
	}
	return nil, nil
}
