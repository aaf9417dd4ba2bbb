package bundle

import (
	"maps"
	"slices"

	specs "github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/bundle/delta"
	"github.com/mensylisir/kubexm/manifest"
)

// leaveOutHeld removes the blobs that the site has from the jobs, and makes h the head of a delta.
func leaveOutHeld(inventory *manifest.Inventory, l *manifest.Lock, h *head, all []job) ([]job, *delta.Savings, error) {
	if inventory.Cluster != l.Cluster {
		return nil, nil, &delta.ClusterError{Inventory: inventory.Cluster, Lock: l.Cluster}
	}
	var err error
	if h.index, err = indexOf(h.root.descriptor, delta.For(inventory)); err != nil {
		return nil, nil, err
	}
	saved := &delta.Savings{}
	var lacking []job
	for _, j := range all {
		own := j.blobs[:0:0]
		for _, b := range j.blobs {
			if saved.Includes(j.part, b.Size, inventory.Blobs[b.Digest]) {
				own = append(own, b)
			}
		}
		if j.blobs = own; len(own) > 0 {
			lacking = append(lacking, j)
		}
	}
	return lacking, saved, nil
}

// indexOf returns index.json: the root and, for a delta, its annotations.
func indexOf(root v1.Descriptor, d *delta.Delta) ([]byte, error) {
	if d != nil {
		root.Annotations = d.Annotations()
	}
	return encode(v1.Index{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: v1.MediaTypeImageIndex,
		Manifests: []v1.Descriptor{root},
	})
}

// allBlobs returns the sizes of all blobs that the root references, in the archive or not.
func (b *Bundle) allBlobs() map[string]int64 {
	all := b.held()
	maps.Copy(all, b.rest.Absent)
	return all
}

// Absent counts the blobs of b that are neither in the archive nor in its bases.
func (b *Bundle) Absent() (blobs int, bytes int64) {
	for _, n := range b.rest.Absent {
		bytes += n
	}
	return len(b.rest.Absent), bytes
}

// Payload lists the files and layers that b can read, sorted by digest. A site with this
// archive can serve them, and a delta for it may leave them out.
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

// AbsentBlobs lists the blobs that Absent counts, sorted by digest.
func (b *Bundle) AbsentBlobs() []archive.Blob {
	var out []archive.Blob
	for _, d := range slices.Sorted(maps.Keys(b.rest.Absent)) {
		out = append(out, archive.Blob{Digest: d, Size: b.rest.Absent[d]})
	}
	return out
}
