package fetch

import (
	"context"
	"fmt"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// maxDepth bounds indexes in indexes. One level is usual, two are known.
const maxDepth = 4

// isIndex tells whether a descriptor names an index.
func isIndex(d ocispec.Descriptor) bool {
	return d.MediaType == ocispec.MediaTypeImageIndex || d.MediaType == dockerIndex
}

// isImage tells whether a descriptor names an image's manifest.
func isImage(d ocispec.Descriptor) bool {
	return d.MediaType == ocispec.MediaTypeImageManifest || d.MediaType == dockerManifest
}

// search looks through an index and the indexes in it.
type search struct {
	*repository
	asked int // documents read
}

// maxAsked bounds the documents of one search, so that a hostile index does not
// have us ask a thousand times.
const maxAsked = 256

// child reads a document that an index names.
func (s *search) child(ctx context.Context, d ocispec.Descriptor, depth int) (*document, error) {
	if depth >= maxDepth {
		return nil, fmt.Errorf("indexes are nested more than %d deep", maxDepth)
	}
	if s.asked++; s.asked > maxAsked {
		return nil, fmt.Errorf("more than %d manifests have to be read to know what the index holds", maxAsked)
	}
	return s.document(ctx, d)
}

// offers lists the images that root holds, with their platforms: root itself, or
// the children of an index, and of the indexes in it.
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
		default: // the document itself has to say what it holds
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

// way finds the documents from root down to the manifest want, root left out;
// nil if root does not hold it.
func (s *search) way(ctx context.Context, root *document, want digest.Digest, depth int) ([]*document, error) {
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
		rest, err := s.way(ctx, child, want, depth+1)
		if err != nil {
			return nil, err
		}
		if rest != nil {
			return append([]*document{child}, rest...), nil
		}
	}
	return nil, nil
}
