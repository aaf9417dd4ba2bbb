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

// document is a manifest or an index that was made here.
type document struct {
	descriptor v1.Descriptor
	text       []byte
}

// narrow gives, for each index of a tree that names what is not in the tree, one
// that names the rest alone, by the digest of the published one. The same index
// and the same platforms give the same bytes, so that what an earlier run sent is
// known again. Everything else in an index stays as it is.
func narrow(src Source, tree []v1.Descriptor) (map[string]document, error) {
	held := map[digest.Digest]bool{}
	for _, d := range tree {
		held[d.Digest] = true
	}
	out := map[string]document{}
	for _, d := range tree { // what an index names comes before it
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

// narrowIndex leaves out of an index what is not held; a child that was narrowed
// itself is named by its own digest.
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
