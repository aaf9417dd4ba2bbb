package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/mensylisir/kubexm/bundle"
)

// Limits for reading signatures from a registry.
const (
	maxSignatures     = 64
	maxReferrers      = 256 // manifests that are read to find the signatures
	maxSignatureBytes = 256 << 10
	maxReferrerPages  = 64
)

// pulledSignatures returns the signatures that refer to root, as lines of the slot. Some
// registries list a referrer with the media type of its config, which is the empty type
// here, instead of its artifact type. So all referrers are requested, and those with one of
// the two types are read.
func pulledSignatures(ctx context.Context, repo *remote.Repository, root v1.Descriptor) ([]byte, error) {
	lines := map[int][]byte{}
	read := 0
	listed := &remote.Repository{Reference: repo.Reference, PlainHTTP: repo.PlainHTTP, Client: Pages(repo.Client, maxReferrerPages)}
	err := listed.Referrers(ctx, plain(root), "", func(found []v1.Descriptor) error {
		for _, d := range found {
			if d.ArtifactType != typeSignature && d.ArtifactType != v1.MediaTypeEmptyJSON {
				continue
			}
			if read++; len(lines) >= maxSignatures || read > maxReferrers {
				return fmt.Errorf("more than %d signatures, or more than %d artifacts that may be signatures", maxSignatures, maxReferrers)
			}
			n, line, err := pulledSignature(ctx, repo, d)
			if err != nil {
				return err
			}
			if line == nil {
				continue
			}
			for ; lines[n] != nil; n++ { // not pushed by kubexm
			}
			lines[n] = line
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("signatures of %s: %w", root.Digest, err)
	}
	var out []byte
	for _, n := range slices.Sorted(maps.Keys(lines)) {
		out = append(append(out, lines[n]...), '\n')
	}
	return out, nil
}

// pulledSignature returns a signature and its line number; nil if the artifact is not a
// signature.
func pulledSignature(ctx context.Context, repo *remote.Repository, d v1.Descriptor) (int, []byte, error) {
	text, err := fetchSmall(ctx, repo.Manifests(), d)
	if err != nil {
		return 0, nil, err
	}
	var m v1.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return 0, nil, err
	}
	if m.ArtifactType != typeSignature {
		return 0, nil, nil
	}
	if len(m.Layers) != 1 {
		return 0, nil, &bundle.FormatError{Code: bundle.CodeDocument, What: fmt.Sprintf("signature %s has %d layers", d.Digest, len(m.Layers))}
	}
	line, err := fetchSmall(ctx, repo.Blobs(), m.Layers[0])
	if err != nil {
		return 0, nil, err
	}
	n, err := strconv.Atoi(m.Annotations[annotationLine])
	if err != nil || n < 1 {
		n = maxSignatures + 1
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, line); err != nil {
		return 0, nil, &bundle.FormatError{Code: bundle.CodeDocument, What: fmt.Sprintf("signature %s is not JSON", d.Digest)}
	}
	if !strings.Contains(string(line), "\n") {
		return n, line, nil // unchanged, as it was signed
	}
	return n, compact.Bytes(), nil
}

// fetchSmall reads a document from a registry, checked against its descriptor.
func fetchSmall(ctx context.Context, from interface {
	Fetch(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error)
}, d v1.Descriptor) ([]byte, error) {
	if d.Size < 0 || d.Size > maxSignatureBytes || d.Digest.Validate() != nil {
		return nil, &bundle.FormatError{Code: bundle.CodeDocument, What: fmt.Sprintf("signature %q of %d bytes", d.Digest, d.Size)}
	}
	rc, err := from.Fetch(ctx, plain(d))
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	text, err := io.ReadAll(io.LimitReader(rc, d.Size+1))
	if err != nil {
		return nil, err
	}
	if digest.FromBytes(text) != d.Digest {
		return nil, &bundle.FormatError{Code: bundle.CodeDocument, What: fmt.Sprintf("signature %s has different content", d.Digest)}
	}
	return text, nil
}
