package bundle

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/manifest"
)

// The annotations of the root's descriptor in a delta's index.json. No signature
// covers them and none has to: what they say can make a reader refuse, and every
// blob is taken by its digest, wherever it comes from.
const (
	annotationDeltaCluster = "io.kubexm.delta.cluster"
	annotationDeltaBases   = "io.kubexm.delta.bases" // roots, sorted, a comma between
	annotationDeltaHeld    = "io.kubexm.delta.held"  // digest of the inventory's list of blobs
)

// Delta says of an archive that it is a part of its bundle: the blobs that a site
// lacked. The root is the whole bundle's, and so are lock and signatures.
type Delta struct {
	Cluster string          `json:"cluster"` // whose site the rest lies at
	Bases   []digest.Digest `json:"bases"`   // roots of the bundles that the site had
	Held    digest.Digest   `json:"held"`    // of the inventory's list of blobs
}

// Saved counts what a delta carries and what the whole bundle would.
type Saved struct {
	Blobs    int   `json:"blobs"`    // layers and files that it carries
	Bytes    int64 `json:"bytes"`    // of these
	AllBlobs int   `json:"allBlobs"` // of the whole bundle
	AllBytes int64 `json:"allBytes"`
}

// ClusterError says that an inventory is of another cluster's site.
type ClusterError struct{ Inventory, Lock string }

func (e *ClusterError) Error() string {
	return fmt.Sprintf("the inventory is of cluster %s, the config of cluster %s", e.Inventory, e.Lock)
}

// newDelta describes the archive that is built for a site.
func newDelta(since *manifest.Inventory) *Delta {
	d := &Delta{Cluster: since.Cluster, Held: digest.Digest(since.BlobsDigest())}
	for _, r := range since.Roots() {
		d.Bases = append(d.Bases, digest.Digest(r))
	}
	return d
}

// since takes what the site holds out of the jobs, and makes h the head of a delta.
func since(inventory *manifest.Inventory, l *manifest.Lock, h *head, all []job) ([]job, *Saved, error) {
	if inventory.Cluster != l.Cluster {
		return nil, nil, &ClusterError{Inventory: inventory.Cluster, Lock: l.Cluster}
	}
	var err error
	if h.index, err = indexOf(h.root.descriptor, newDelta(inventory)); err != nil {
		return nil, nil, err
	}
	saved := &Saved{}
	var lacking []job
	for _, j := range all {
		own := j.blobs[:0:0]
		for _, b := range j.blobs {
			if j.part == documentPart {
				own = append(own, b)
				continue
			}
			saved.AllBlobs, saved.AllBytes = saved.AllBlobs+1, saved.AllBytes+b.Size
			if j.part.at(inventory.Blobs[b.Digest]) {
				continue
			}
			saved.Blobs, saved.Bytes = saved.Blobs+1, saved.Bytes+b.Size
			own = append(own, b)
		}
		if j.blobs = own; len(own) > 0 {
			lacking = append(lacking, j)
		}
	}
	return lacking, saved, nil
}

// part is what the blobs of a job are in the bundle.
type partKind int

const (
	filePart partKind = iota
	layerPart
	documentPart // an index, a manifest, a config: small, and always carried
)

// at tells whether a site that has a blob there can serve it when it installs:
// registries hold layers, and files come out of bundles alone.
func (p partKind) at(where manifest.HeldIn) bool {
	return where.Bundle() || where.Registry() && p == layerPart
}

// indexOf makes index.json: the root, and of a delta what it is.
func indexOf(root v1.Descriptor, d *Delta) ([]byte, error) {
	if d != nil {
		var bases []string
		for _, b := range d.Bases {
			bases = append(bases, b.String())
		}
		root.Annotations = map[string]string{
			annotationDeltaCluster: d.Cluster, annotationDeltaBases: strings.Join(bases, ","), annotationDeltaHeld: d.Held.String(),
		}
	}
	return encode(v1.Index{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: v1.MediaTypeImageIndex,
		Manifests: []v1.Descriptor{root},
	})
}

// deltaOf reads what indexOf wrote; nil for a whole bundle.
func deltaOf(root v1.Descriptor) (*Delta, error) {
	held, ok := root.Annotations[annotationDeltaHeld]
	if !ok {
		return nil, nil
	}
	d := &Delta{Cluster: root.Annotations[annotationDeltaCluster], Held: digest.Digest(held)}
	if list := root.Annotations[annotationDeltaBases]; list != "" {
		for b := range strings.SplitSeq(list, ",") {
			d.Bases = append(d.Bases, digest.Digest(b))
		}
	}
	for _, x := range append(slices.Clone(d.Bases), d.Held) {
		if x.Validate() != nil || x.Algorithm() != digest.SHA256 {
			return nil, &FormatError{Code: CodeRoot, What: fmt.Sprintf("index.json names %.80q as a part of a delta's base", x)}
		}
	}
	return d, nil
}

// whole gives the sizes of all that the root leads to, wherever it lies.
func (b *Bundle) whole() map[string]int64 {
	all := b.held()
	maps.Copy(all, b.absent)
	return all
}

// Absent counts the blobs that b is made of and that neither the archive nor its
// bases hold.
func (b *Bundle) Absent() (blobs int, bytes int64) {
	for _, n := range b.absent {
		bytes += n
	}
	return len(b.absent), bytes
}

// Payload lists the files and layers that b can read, sorted by digest: what a
// site that keeps the archive can serve, and a delta for it may leave out.
func (b *Bundle) Payload() ([]archive.Blob, error) {
	held, found := b.held(), map[string]bool{}
	for _, a := range b.Lock.Artifacts {
		for _, x := range a.Blobs() {
			found["sha256:"+x.SHA256] = true
		}
	}
	for _, im := range b.Lock.Images {
		tree, err := b.Tree(im)
		if err != nil {
			return nil, err
		}
		for _, d := range tree {
			if !IsManifest(d.MediaType) || IsIndex(d.MediaType) {
				continue
			}
			parts, err := b.children(d)
			if err != nil {
				return nil, err
			}
			for _, l := range parts[1:] { // the first is the config
				found[l.Digest.String()] = true
			}
		}
	}
	var out []archive.Blob
	for _, d := range slices.Sorted(maps.Keys(found)) {
		if n, ok := held[d]; ok {
			out = append(out, archive.Blob{Digest: d, Size: n})
		}
	}
	return out, nil
}

// AbsentBlobs lists what Absent counts, sorted by digest.
func (b *Bundle) AbsentBlobs() []archive.Blob {
	var out []archive.Blob
	for _, d := range slices.Sorted(maps.Keys(b.absent)) {
		out = append(out, archive.Blob{Digest: d, Size: b.absent[d]})
	}
	return out
}
