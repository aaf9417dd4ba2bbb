package delta

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/manifest"
)

// The annotations of the root's descriptor in a delta's index.json. No signature
// covers them and none has to: what they say can make a reader refuse, and every
// blob is taken by its digest, wherever it comes from.
const (
	annotationCluster = "io.kubexm.delta.cluster"
	annotationBases   = "io.kubexm.delta.bases" // roots, sorted, a comma between
	annotationHeld    = "io.kubexm.delta.held"  // digest of the inventory's list of blobs
)

// Delta says of an archive that it is a part of its bundle: the blobs that a site
// lacked. The root is the whole bundle's, and so are lock and signatures.
type Delta struct {
	Cluster string          `json:"cluster"` // whose site the rest lies at
	Bases   []digest.Digest `json:"bases"`   // roots of the bundles that the site had
	Held    digest.Digest   `json:"held"`    // of the inventory's list of blobs
}

// For describes the archive that is built for a site.
func For(since *manifest.Inventory) *Delta {
	d := &Delta{Cluster: since.Cluster, Held: digest.Digest(since.BlobsDigest())}
	for _, r := range since.Roots() {
		d.Bases = append(d.Bases, digest.Digest(r))
	}
	return d
}

// Annotations are those of the root's descriptor; nil for a whole bundle, whose d is nil.
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

// Read reads what Annotations wrote; nil for a whole bundle.
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
			return nil, fmt.Errorf("names %.80q as a part of a delta's base", x)
		}
	}
	return d, nil
}

// Part is what a blob is in a bundle.
type Part int

// The parts.
const (
	File     Part = iota
	Layer         // of an image
	Document      // an index, a manifest, a config: small, and always carried
)

// Saved counts what a delta carries and what the whole bundle would.
type Saved struct {
	Blobs    int   `json:"blobs"`    // layers and files that it carries
	Bytes    int64 `json:"bytes"`    // of these
	AllBlobs int   `json:"allBlobs"` // of the whole bundle
	AllBytes int64 `json:"allBytes"`
}

// Carry tells whether a delta for a site that has a blob there carries it, and counts it.
// Registries serve layers to an installation, and files come out of bundles alone.
func (s *Saved) Carry(p Part, size int64, where manifest.HeldIn) bool {
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

// ClusterError says that an inventory is of another cluster's site.
type ClusterError struct{ Inventory, Lock string }

func (e *ClusterError) Error() string {
	return fmt.Sprintf("the inventory is of cluster %s, the config of cluster %s", e.Inventory, e.Lock)
}

// BaseError says that an archive is not what a delta was made against.
type BaseError struct {
	Path  string
	Root  digest.Digest   // of the archive at Path
	Delta digest.Digest   // root of the delta
	Want  []digest.Digest // its bases
}

func (e *BaseError) Error() string {
	return fmt.Sprintf("%s is bundle %s, and not a base of delta %s, which was made against %s", e.Path, e.Root, e.Delta, InWords(e.Want))
}

// InWords lists the bases of a delta in a sentence.
func InWords(bases []digest.Digest) string {
	if len(bases) == 0 {
		return "no bundle, but a registry alone"
	}
	var out []string
	for _, b := range bases {
		out = append(out, b.String())
	}
	return strings.Join(out, " and ")
}
