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

// A tree deeper or wider than these is not one that kubexm built.
const (
	maxDepth       = 6
	maxDescriptors = 1 << 18
	maxDocuments   = 64 << 20 // bytes of manifests and indexes
	maxFindings    = 100      // told one by one
)

// checkClosure walks from the root to every blob it leads to, and compares that
// set with what the lock pins and with what the archive holds. Children of an
// image's index that the lock does not want may be absent: the index stays as
// published, and the bundle carries the wanted platforms.
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
		return w.found() // what was not looked at is no finding
	}
	for _, want := range pinnedBlobs(b.Lock) {
		if !w.reached[want.digest] {
			w.fail("%s: blob %s is pinned by the lock and not part of the bundle", want.id, want.digest)
		}
	}
	for d := range w.held {
		if !w.reached[d] {
			w.fail("blob %s belongs to nothing in the bundle", d)
		}
	}
	return w.found()
}

// walk collects what a root leads to.
type walk struct {
	bundle  *Bundle
	held    map[string]int64
	absent  map[string]int64 // collects what a delta leaves to its base; nil where nothing may be absent
	reached map[string]bool
	errs    []error
	more    int  // findings that errs has no room for
	cut     bool // a part of the tree was not looked at: it is larger than a bundle's can be

	descriptors int   // that were looked at
	documents   int64 // bytes of manifests and indexes that were read
}

func (w *walk) fail(format string, args ...any) {
	w.add(&FormatError{Code: CodeTree, What: fmt.Sprintf(format, args...)})
}

// limit notes that a part of the tree is not looked at.
func (w *walk) limit(format string, args ...any) {
	w.cut = true
	w.add(&FormatError{Code: CodeLimit, What: fmt.Sprintf(format, args...)})
}

// add keeps a finding, and counts those that are too many to tell.
func (w *walk) add(err error) {
	if len(w.errs) >= maxFindings {
		w.more++
		return
	}
	w.errs = append(w.errs, err)
}

// found gives the findings, sorted.
func (w *walk) found() error {
	slices.SortFunc(w.errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	if w.more > 0 {
		w.errs = append(w.errs, &FormatError{Code: CodeTree, What: fmt.Sprintf("%d findings more of this kind", w.more)})
	}
	return errors.Join(w.errs...)
}

// tooMuch tells whether the tree has got larger than a bundle's can be; then
// nothing more of it is looked at.
func (w *walk) tooMuch() bool {
	return w.descriptors > maxDescriptors || w.documents > maxDocuments
}

// required walks a descriptor whose blob has to be there.
func (w *walk) required(d v1.Descriptor, depth int) {
	name := d.Digest.String()
	size, ok := w.held[name]
	switch {
	case d.Digest.Validate() != nil:
		w.fail("descriptor with digest %q", name)
	case !ok:
		w.fail("blob %s is missing", name)
	case size != d.Size:
		w.fail("blob %s has %d bytes, its descriptor says %d", name, size, d.Size)
	case depth > maxDepth:
		w.limit("blob %s lies too deep", name)
	case !w.reached[name]:
		w.reached[name] = true
		w.children(d, depth)
	}
}

// children walks what a manifest or an index names.
func (w *walk) children(d v1.Descriptor, depth int) {
	if w.tooMuch() {
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
	if w.tooMuch() {
		w.limit("its tree has more than %d descriptors or %d bytes of documents", maxDescriptors, int64(maxDocuments))
		return
	}
	for i, c := range children {
		_, ok := w.held[c.Digest.String()]
		switch {
		case !ok && w.absent != nil && IsManifest(d.MediaType) && !IsIndex(d.MediaType) && i > 0:
			w.elsewhere(c)
		case ok || !IsIndex(d.MediaType):
			w.required(c, depth+1)
		}
	}
}

// elsewhere notes a layer or a file of a delta that its archive does not hold.
// Documents have to be there: they say what else belongs to the bundle.
func (w *walk) elsewhere(d v1.Descriptor) {
	name := d.Digest.String()
	n, twice := w.absent[name]
	switch {
	case d.Digest.Validate() != nil || d.Digest.Algorithm() != digest.SHA256 || d.Size < 0:
		w.fail("descriptor with digest %q of %d bytes", name, d.Size)
	case twice && n != d.Size:
		w.fail("blob %s has %d bytes in one place and %d in another", name, n, d.Size)
	default:
		w.reached[name] = true
		w.absent[name] = d.Size
	}
}

// The media types of Docker's form of an index and a manifest.
const (
	mediaDockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
	mediaDockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
)

// pinned is a blob that a lock names, with the id of what it belongs to.
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
