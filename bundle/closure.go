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
	maxDescriptors = 1 << 20
)

// checkClosure walks from the root to every blob it leads to, and compares that
// set with what the lock pins and with what the archive holds. Children of an
// image's index that the lock does not want may be absent: the index stays as
// published, and the bundle carries the wanted platforms.
func (b *Bundle) checkClosure(root v1.Index) error {
	w := &walk{bundle: b, held: b.held(), reached: map[string]bool{}}
	if b.Delta != nil {
		w.absent = b.absent
	}
	w.reached[b.Root.Digest.String()] = true
	for _, d := range root.Manifests {
		w.required(d, 1)
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
	slices.SortFunc(w.errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(w.errs...)
}

// walk collects what a root leads to.
type walk struct {
	bundle  *Bundle
	held    map[string]int64
	absent  map[string]int64 // collects what a delta leaves to its base; nil where nothing may be absent
	reached map[string]bool
	errs    []error
}

func (w *walk) fail(format string, args ...any) {
	w.errs = append(w.errs, &FormatError{What: fmt.Sprintf(format, args...)})
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
	case depth > maxDepth || len(w.reached) > maxDescriptors:
		w.fail("blob %s lies too deep", name)
	case !w.reached[name]:
		w.reached[name] = true
		w.children(d, depth)
	}
}

// children walks what a manifest or an index names.
func (w *walk) children(d v1.Descriptor, depth int) {
	children, err := w.bundle.children(d)
	if err != nil {
		w.errs = append(w.errs, err)
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
	case len(w.reached) > maxDescriptors:
		w.fail("blob %s lies too deep", name)
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
