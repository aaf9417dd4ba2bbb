package delta

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/manifest"
)

// The annotations of the root's descriptor in a delta's index.json. No signature covers
// them, and none needs to: wrong annotations can only make a reader refuse the delta,
// because every blob is checked against its digest, whatever its source.
const (
	annotationCluster = "io.kubexm.delta.cluster"
	annotationBases   = "io.kubexm.delta.bases" // roots, sorted and separated by commas
	annotationHeld    = "io.kubexm.delta.held"  // digest of the inventory's list of blobs
)

// Delta describes an archive that includes only the blobs that a site lacked. Root, lock
// and signatures are those of the complete bundle.
type Delta struct {
	Cluster string          `json:"cluster"` // cluster whose site has the other blobs
	Bases   []digest.Digest `json:"bases"`   // roots of the bundles that the site had
	Held    digest.Digest   `json:"held"`    // digest of the inventory's list of blobs
}

// For returns the description of a delta for a site.
func For(since *manifest.Inventory) *Delta {
	d := &Delta{Cluster: since.Cluster, Held: digest.Digest(since.BlobsDigest())}
	for _, r := range since.Roots() {
		d.Bases = append(d.Bases, digest.Digest(r))
	}
	return d
}

// Annotations returns the annotations of the root's descriptor; nil if d is nil, for a
// complete bundle.
func (d *Delta) Annotations() map[string]string {
	if d == nil {
		return nil
	}
	var bases []string
	for _, b := range d.Bases {
		bases = append(bases, b.String())
	}
	return map[string]string{annotationCluster: d.Cluster, annotationBases: strings.Join(bases, ","), annotationHeld: d.Held.String()}
}

// Read parses the annotations that Annotations returned; nil for a complete bundle.
func Read(annotations map[string]string) (*Delta, error) {
	held, ok := annotations[annotationHeld]
	if !ok {
		return nil, nil
	}
	d := &Delta{Cluster: annotations[annotationCluster], Held: digest.Digest(held)}
	if list := annotations[annotationBases]; list != "" {
		for b := range strings.SplitSeq(list, ",") {
			d.Bases = append(d.Bases, digest.Digest(b))
		}
	}
	for _, x := range append(slices.Clone(d.Bases), d.Held) {
		if x.Validate() != nil || x.Algorithm() != digest.SHA256 {
			return nil, fmt.Errorf("lists %.80q, which is not a sha256 digest, for the base of a delta", x)
		}
	}
	return d, nil
}

// Part is the role of a blob in a bundle.
type Part int

// The parts.
const (
	File     Part = iota
	Layer         // of an image
	Document      // an index, a manifest or a config: small, and always included
)

// Savings compares the size of a delta with that of the complete bundle.
type Savings struct {
	Blobs    int   `json:"blobs"`    // layers and files in the delta
	Bytes    int64 `json:"bytes"`    // size of these
	AllBlobs int   `json:"allBlobs"` // layers and files in the complete bundle
	AllBytes int64 `json:"allBytes"`
}

// Includes reports whether a delta includes a blob that the site has in where, and counts it.
// An installation can read layers from a registry, but files only from bundles.
func (s *Savings) Includes(p Part, size int64, where manifest.BlobLocation) bool {
	if p == Document {
		return true
	}
	s.AllBlobs, s.AllBytes = s.AllBlobs+1, s.AllBytes+size
	if where.Bundle() || where.Registry() && p == Layer {
		return false
	}
	s.Blobs, s.Bytes = s.Blobs+1, s.Bytes+size
	return true
}

// ClusterError reports that an inventory belongs to the site of another cluster.
type ClusterError struct{ Inventory, Lock string }

func (e *ClusterError) Error() string {
	return fmt.Sprintf("the inventory is of cluster %s, the config of cluster %s", e.Inventory, e.Lock)
}

// BaseError reports that an archive is not a base of a delta.
type BaseError struct {
	Path  string
	Root  digest.Digest   // of the archive at Path
	Delta digest.Digest   // root of the delta
	Want  []digest.Digest // its bases
}

func (e *BaseError) Error() string {
	return fmt.Sprintf("%s is bundle %s, which is not a base of delta %s: the delta was built against %s", e.Path, e.Root, e.Delta, FormatBases(e.Want))
}

// FormatBases formats the bases of a delta for an error.
func FormatBases(bases []digest.Digest) string {
	if len(bases) == 0 {
		return "a registry only, without a bundle"
	}
	var out []string
	for _, b := range bases {
		out = append(out, b.String())
	}
	return strings.Join(out, " and ")
}
