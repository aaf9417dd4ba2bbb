package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/durable"
)

// ExtractOptions narrows an extraction.
type ExtractOptions struct {
	Names    []string    // ids, names, logical names or references; empty means all
	Progress func(int64) // receives the bytes written since the last call; may be nil
}

// ExistsError reports that the folder to extract into is not empty.
type ExistsError struct{ Dir string }

func (e *ExistsError) Error() string { return e.Dir + " is not empty" }

// Document returns one of the documents that describe b, as stored: "lock", "config" or
// "summary".
func (b *Bundle) Document(name string) ([]byte, error) {
	media := map[string]string{"lock": mediaLock, "config": mediaConfig, "summary": mediaSummary}
	text, ok := b.texts[media[name]]
	if !ok {
		return nil, fmt.Errorf("a bundle has no document %q", name)
	}
	return text, nil
}

// ExtractFiles writes the artifacts' files below dir as component/version/os-arch/name and
// returns their number.
func (b *Bundle) ExtractFiles(ctx context.Context, dir string, o ExtractOptions) (int, error) {
	chosen, err := choose(o.Names, b.Lock.Artifacts, func(a manifest.Artifact, n string) bool { return a.ID == n || a.Name == n })
	if err != nil {
		return 0, err
	}
	wanted := map[string]bool{}
	for _, a := range chosen {
		for _, x := range a.Blobs() {
			wanted["sha256:"+x.SHA256] = true
		}
	}
	if err := b.checkAbsent(func(d string) bool { return wanted[d] }); err != nil {
		return 0, err
	}
	t, err := b.target(ctx, dir, o.Progress)
	if err != nil {
		return 0, err
	}
	defer t.close()
	n := 0
	for _, a := range chosen {
		mode := fs.FileMode(0o644)
		if a.Kind == manifest.Binary {
			mode = 0o755
		}
		for _, blob := range a.Blobs() {
			if err := t.blob("sha256:"+blob.SHA256, FilePath(a, blob), mode); err != nil {
				return n, fmt.Errorf("%s: %w", a.ID, err)
			}
			n++
		}
	}
	return n, t.sync()
}

// FilePath is the path below the folder that one of a's files is extracted to.
func FilePath(a manifest.Artifact, b manifest.Blob) string {
	platform := "any"
	if !a.Platform.IsZero() {
		platform = a.Platform.OS + "-" + a.Platform.Arch
	}
	return path.Join(a.Name, a.Version, platform, b.Name)
}

// ExtractImages writes images as an OCI layout in dir and returns their number. The
// layout's index.json lists each image by its reference. Indexes stay as published: they
// also list platforms that the bundle does not include.
func (b *Bundle) ExtractImages(ctx context.Context, dir string, o ExtractOptions) (int, error) {
	chosen, err := choose(o.Names, b.Lock.Images, func(im manifest.ImagePin, n string) bool {
		return im.ID == n || im.Reference == n || slices.Contains(im.Names, n)
	})
	if err != nil {
		return 0, err
	}
	index := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex}
	w := &walk{bundle: b, held: b.allBlobs(), reached: map[string]bool{}}
	for _, im := range chosen {
		d := imageDescriptor(im)
		index.Manifests = append(index.Manifests, d)
		w.required(d, 1)
	}
	if err := w.found(); err != nil {
		return 0, err
	}
	return len(chosen), b.writeLayout(ctx, dir, index, w.reached, o.Progress)
}

// ExtractLayout writes the complete bundle as an OCI layout whose index.json lists only the
// root, and returns the number of its blobs.
func (b *Bundle) ExtractLayout(ctx context.Context, dir string, o ExtractOptions) (int, error) {
	index := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{b.Root}}
	all := map[string]bool{}
	for d := range b.allBlobs() {
		all[d] = true
	}
	return len(all), b.writeLayout(ctx, dir, index, all, o.Progress)
}

// writeLayout writes blobs, and index.json last: its presence marks a complete layout.
func (b *Bundle) writeLayout(ctx context.Context, dir string, index v1.Index, blobs map[string]bool, progress func(int64)) error {
	if err := b.checkAbsent(func(d string) bool { return blobs[d] }); err != nil {
		return err
	}
	t, err := b.target(ctx, dir, progress)
	if err != nil {
		return err
	}
	defer t.close()
	text, err := encode(index)
	if err != nil {
		return err
	}
	for _, d := range slices.Sorted(maps.Keys(blobs)) {
		if err := t.blob(d, path.Join("blobs", "sha256", digest.Digest(d).Encoded()), 0o644); err != nil {
			return err
		}
	}
	if err := errors.Join(t.file("oci-layout", ociLayout), t.sync()); err != nil {
		return err
	}
	if err := t.file("index.json", text); err != nil {
		return err
	}
	return t.sync()
}

// target is a folder to extract into.
type target struct {
	ctx      func() error // the context's error
	bundle   *Bundle
	root     *os.Root
	progress func(int64)
	folders  map[string]bool // folders with new files, and their parents
}

// target opens dir, which must be empty or absent. All writes go through os.Root, so no
// name can point outside it.
func (b *Bundle) target(ctx context.Context, dir string, progress func(int64)) (*target, error) {
	if err := durable.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if len(entries) > 0 {
		return nil, &ExistsError{Dir: dir}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	if progress == nil {
		progress = func(int64) {}
	}
	return &target{ctx: ctx.Err, bundle: b, root: root, progress: progress, folders: map[string]bool{".": true}}, nil
}

func (t *target) close() { _ = t.root.Close() } // all writes are done

// blob copies one blob to name. The file has a temporary name until its last byte was
// checked.
func (t *target) blob(d, name string, mode fs.FileMode) error {
	rc, _, err := t.bundle.Blob(d)
	if err != nil {
		return err
	}
	defer rc.Close()
	return t.write(name, mode, rc)
}

func (t *target) file(name string, text []byte) error {
	return t.write(name, 0o644, bytes.NewReader(text))
}

func (t *target) write(name string, mode fs.FileMode, r io.Reader) error {
	if err := t.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	for at := path.Dir(name); !t.folders[at]; at = path.Dir(at) {
		t.folders[at] = true
	}
	return durable.Write(t.root, name, mode, &meter{r: r, err: t.ctx, add: t.progress})
}

// sync syncs the folders of all files that were written.
func (t *target) sync() error {
	for _, at := range slices.Sorted(maps.Keys(t.folders)) {
		if err := durable.SyncFolder(t.root, at); err != nil {
			return err
		}
	}
	return nil
}

// meter counts the bytes read and stops when the context ends.
type meter struct {
	r   io.Reader
	err func() error
	add func(int64)
}

func (m *meter) Read(p []byte) (int, error) {
	if err := m.err(); err != nil {
		return 0, err
	}
	n, err := m.r.Read(p)
	m.add(int64(n))
	return n, err
}

// choose returns the items that match any of names, or all if names is empty. A name
// without a match is an error.
func choose[T any](names []string, all []T, is func(T, string) bool) ([]T, error) {
	if len(names) == 0 {
		return all, nil
	}
	var chosen []T
	for _, x := range all {
		if slices.ContainsFunc(names, func(n string) bool { return is(x, n) }) {
			chosen = append(chosen, x)
		}
	}
	for _, n := range names {
		if !slices.ContainsFunc(all, func(x T) bool { return is(x, n) }) {
			return nil, &NameError{Name: n}
		}
	}
	return chosen, nil
}

// held returns every blob that can be read, with its size: those of the archive and, for a
// delta, of its bases.
func (b *Bundle) held() map[string]int64 {
	m := map[string]int64{}
	maps.Copy(m, b.rest.Sourced)
	for _, x := range b.archive.Members() {
		if strings.HasPrefix(x.Name, "blobs/") {
			m[x.Digest] = x.Size
		}
	}
	return m
}

// NameError reports that the bundle contains nothing with this name.
type NameError struct{ Name string }

func (e *NameError) Error() string { return e.Name + " is not in the bundle" }
