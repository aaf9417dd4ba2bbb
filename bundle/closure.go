package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/manifest"
)

// Limits of a bundle's tree. kubexm builds no deeper or wider one.
const (
	maxDepth       = 6
	maxDescriptors = 1 << 18
	maxDocuments   = 64 << 20 // bytes of manifests and indexes
	maxFindings    = 100      // reported one by one; the rest is counted
)

// checkClosure walks from the root to every blob that it references. It compares that set
// with the blobs that the lock pins and with those in the archive. An image's index stays
// as published, so it may list platforms that the lock does not select; these may be
// absent.
func (b *Bundle) checkClosure(root v1.Index) error {
	w := &walk{bundle: b, held: b.held(), reached: map[string]bool{}}
	if b.Delta != nil {
		w.absent = b.rest.Absent
	}
	w.reached[b.Root.Digest.String()] = true
	for _, d := range root.Manifests {
		w.required(d, 1)
	}
	if w.cut {
		return w.found() // parts that were not walked are not findings
	}
	for _, want := range pinnedBlobs(b.Lock) {
		if !w.reached[want.digest] {
			w.fail("%s: blob %s is pinned by the lock but missing in the bundle", want.id, want.digest)
		}
	}
	for d := range w.held {
		if !w.reached[d] {
			w.fail("blob %s is not referenced by anything in the bundle", d)
		}
	}
	return w.found()
}

// walk collects the blobs that a root references.
type walk struct {
	bundle  *Bundle
	held    map[string]int64
	absent  map[string]int64 // collects the blobs that a delta leaves to its base; nil if no blob may be absent
	reached map[string]bool
	errs    []error
	more    int  // number of findings beyond maxFindings
	cut     bool // a part of the tree was not walked because it exceeds the limits

	descriptors int   // descriptors walked
	documents   int64 // bytes of manifests and indexes read
}

func (w *walk) fail(format string, args ...any) {
	w.add(&FormatError{Code: CodeTree, What: fmt.Sprintf(format, args...)})
}

// limit records that a part of the tree was not walked because of a limit.
func (w *walk) limit(format string, args ...any) {
	w.cut = true
	w.add(&FormatError{Code: CodeLimit, What: fmt.Sprintf(format, args...)})
}

// add records a finding, or counts it if there are too many.
func (w *walk) add(err error) {
	if len(w.errs) >= maxFindings {
		w.more++
		return
	}
	w.errs = append(w.errs, err)
}

// found returns the findings, sorted.
func (w *walk) found() error {
	slices.SortFunc(w.errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	if w.more > 0 {
		w.errs = append(w.errs, &FormatError{Code: CodeTree, What: fmt.Sprintf("%d more findings of this kind", w.more)})
	}
	return errors.Join(w.errs...)
}

// exceedsLimits reports whether the tree exceeds the limits; the walk then stops.
func (w *walk) exceedsLimits() bool {
	return w.descriptors > maxDescriptors || w.documents > maxDocuments
}

// required walks a descriptor whose blob must be in the archive.
func (w *walk) required(d v1.Descriptor, depth int) {
	name := d.Digest.String()
	size, ok := w.held[name]
	switch {
	case d.Digest.Validate() != nil:
		w.fail("descriptor with digest %q", name)
	case !ok:
		w.fail("blob %s is missing", name)
	case size != d.Size:
		w.fail("blob %s has %d bytes, its descriptor states %d", name, size, d.Size)
	case depth > maxDepth:
		w.limit("blob %s is nested too deeply", name)
	case !w.reached[name]:
		w.reached[name] = true
		w.children(d, depth)
	}
}

// children walks the descriptors in a manifest or an index.
func (w *walk) children(d v1.Descriptor, depth int) {
	if w.exceedsLimits() {
		return
	}
	children, err := w.bundle.children(d)
	if err != nil {
		w.cut = w.cut || errors.Is(err, CodeLimit)
		w.add(err)
		return
	}
	w.descriptors += len(children)
	if IsManifest(d.MediaType) {
		w.documents += d.Size
	}
	if w.exceedsLimits() {
		w.limit("its tree has more than %d descriptors or %d bytes of documents", maxDescriptors, int64(maxDocuments))
		return
	}
	for i, c := range children {
		_, ok := w.held[c.Digest.String()]
		switch {
		case !ok && w.absent != nil && IsManifest(d.MediaType) && !IsIndex(d.MediaType) && i > 0:
			w.recordAbsent(c)
		case ok || !IsIndex(d.MediaType):
			w.required(c, depth+1)
		}
	}
}

// recordAbsent records a layer or a file of a delta that is not in its archive. Documents must
// be in the archive: they list what else belongs to the bundle.
func (w *walk) recordAbsent(d v1.Descriptor) {
	name := d.Digest.String()
	n, twice := w.absent[name]
	switch {
	case d.Digest.Validate() != nil || d.Digest.Algorithm() != digest.SHA256 || d.Size < 0:
		w.fail("descriptor with digest %q of %d bytes", name, d.Size)
	case twice && n != d.Size:
		w.fail("blob %s is listed with both %d and %d bytes", name, n, d.Size)
	default:
		w.reached[name] = true
		w.absent[name] = d.Size
	}
}

// The media types of Docker's index and manifest.
const (
	mediaDockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
	mediaDockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
)

// pinned is a blob that a lock pins, with the id of its artifact or image.
type pinned struct{ id, digest string }

func pinnedBlobs(l *manifest.Lock) []pinned {
	var ps []pinned
	for _, a := range l.Artifacts {
		for _, b := range a.Blobs() {
			ps = append(ps, pinned{a.ID, digest.NewDigestFromEncoded(digest.SHA256, b.SHA256).String()})
		}
	}
	for _, im := range l.Images {
		ps = append(ps, pinned{im.ID, im.Digest})
		for _, p := range im.Platforms {
			ps = append(ps, pinned{im.ID, p.Digest})
		}
	}
	return ps
}
