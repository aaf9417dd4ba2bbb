package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle"
)

// document is a generated manifest or index.
type document struct {
	descriptor v1.Descriptor
	text       []byte
}

// narrow returns, for each index of a tree that refers to manifests outside the tree, an index
// without these manifests, by the digest of the published index. The rest of the index is
// unchanged. The result depends only on the index and the platforms, so that a later run
// recognizes what an earlier run sent.
func narrow(src Source, tree []v1.Descriptor) (map[string]document, error) {
	held := map[digest.Digest]bool{}
	for _, d := range tree {
		held[d.Digest] = true
	}
	out := map[string]document{}
	for _, d := range tree { // manifests come before the index that refers to them
		if !bundle.IsIndex(d.MediaType) {
			continue
		}
		text, err := readAll(src, d)
		if err != nil {
			return nil, err
		}
		less, changed, err := narrowIndex(text, held, out)
		if err != nil {
			return nil, fmt.Errorf("index %s: %w", d.Digest, err)
		}
		if changed {
			out[d.Digest.String()] = document{
				descriptor: v1.Descriptor{MediaType: d.MediaType, Digest: digest.FromBytes(less), Size: int64(len(less))}, text: less,
			}
		}
	}
	return out, nil
}

func readAll(src Source, d v1.Descriptor) ([]byte, error) {
	rc, size, err := src.Blob(d.Digest.String())
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	if size > maxSurveyed {
		return nil, fmt.Errorf("index %s has %d bytes", d.Digest, size)
	}
	return io.ReadAll(rc)
}

// narrowIndex removes manifests from an index that are not held. A child index that was
// narrowed is referred to by its new digest.
func narrowIndex(text []byte, held map[digest.Digest]bool, narrowed map[string]document) (less []byte, changed bool, err error) {
	var index map[string]json.RawMessage
	var children []map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(text, &index), json.Unmarshal(index["manifests"], &children)); err != nil {
		return nil, false, err
	}
	kept := []map[string]json.RawMessage{}
	for _, c := range children {
		var d digest.Digest
		if err := json.Unmarshal(c["digest"], &d); err != nil {
			return nil, false, err
		}
		if !held[d] {
			changed = true
			continue
		}
		if own, ok := narrowed[d.String()]; ok {
			changed = true
			c["digest"] = fmt.Appendf(nil, "%q", own.descriptor.Digest)
			c["size"] = fmt.Appendf(nil, "%d", own.descriptor.Size)
		}
		kept = append(kept, c)
	}
	if index["manifests"], err = json.Marshal(kept); err != nil {
		return nil, false, err
	}
	less, err = json.Marshal(index)
	return less, changed, err
}
