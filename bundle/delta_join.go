package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle/archive"
)

// ErrWhole is why an archive is not completed: nothing is left out of it.
var ErrWhole = errors.New("is a whole bundle and needs no base")

// CompleteRequest says which delta to make whole, and from what.
type CompleteRequest struct {
	Delta    string   // the archive, or the first of its volumes
	Policy   Policy   // asked about the root before anything else is read
	Bases    []string // archives that hold the rest
	Output   string   // the whole archive's path; written beside it first, and renamed
	Parallel int
	Progress func(int64)       // told how many bytes of blobs were read since the last call; may be nil
	Planned  func(bytes int64) // told how many there will be; may be nil
}

// Complete writes the whole bundle that a delta is a part of: the very bytes that
// a build from the same lock gives, with the delta's signatures, which are as good
// for it.
func Complete(ctx context.Context, r CompleteRequest) (*Built, error) {
	b, err := OpenPart(ctx, r.Delta, r.Policy, Bases{Given: r.Bases})
	if err != nil {
		return nil, err
	}
	defer func() { _ = b.Close() }() // read only: nothing to lose
	if b.Delta == nil {
		return nil, fmt.Errorf("%s %w", r.Delta, ErrWhole)
	}
	if err := b.Whole(); err != nil {
		return nil, err
	}
	layout, err := b.wholeLayout()
	if err != nil {
		return nil, fmt.Errorf("complete %s: %w", r.Delta, err)
	}
	if err := checkSpace(addSpace(nil, filepath.Dir(r.Output), layout.MaxSize())); err != nil {
		return nil, err
	}
	if r.Planned != nil {
		total := int64(0)
		for _, m := range layout.Members() {
			total += m.Size
		}
		r.Planned(total)
	}
	if err := b.writeWhole(ctx, r, layout); err != nil {
		return nil, fmt.Errorf("complete %s: %w", r.Delta, err)
	}
	return built(BuildRequest{Output: r.Output}, b.Root.Digest)
}

// wholeLayout lays out the bundle as Build does: the head as the delta has it, and
// all blobs, of which the lock says which are compressed.
func (b *Bundle) wholeLayout() (*archive.Layout, error) {
	index, err := indexOf(v1.Descriptor{
		MediaType: b.Root.MediaType, Digest: b.Root.Digest, Size: b.Root.Size, ArtifactType: TypeRoot,
	}, nil)
	if err != nil {
		return nil, err
	}
	var head [][]byte
	var blobs []archive.Blob
	seen := map[string]bool{}
	slot := false
	for _, m := range b.archive.Members() {
		switch {
		case !strings.HasPrefix(m.Name, "blobs/"):
			slot = slot || m.Digest == ""
		case slot:
			blobs = append(blobs, archive.Blob{Digest: m.Digest, Size: m.Size, Compress: !m.Stored()})
		default:
			text, err := b.read(v1.Descriptor{Digest: digest.Digest(m.Digest), Size: m.Size})
			if err != nil {
				return nil, err
			}
			head = append(head, text)
		}
		seen[m.Digest] = true
	}
	add := func(x archive.Blob) {
		if !seen[x.Digest] {
			seen[x.Digest] = true
			blobs = append(blobs, x)
		}
	}
	for _, a := range b.Lock.Artifacts {
		for _, x := range a.Blobs() {
			add(archive.Blob{Digest: "sha256:" + x.SHA256, Size: x.Size, Compress: compressFile(a, x)})
		}
	}
	for _, im := range b.Lock.Images {
		tree, err := b.Tree(im)
		if err != nil {
			return nil, err
		}
		for _, d := range tree {
			add(archive.Blob{Digest: d.Digest.String(), Size: d.Size, Compress: compressContent(d.MediaType)})
		}
	}
	return archive.NewLayout(ociLayout, index, head, blobs)
}

func (b *Bundle) writeWhole(ctx context.Context, r CompleteRequest, layout *archive.Layout) error {
	signatures, err := b.archive.Signatures()
	if err != nil {
		return err
	}
	progress := r.Progress
	if progress == nil {
		progress = func(int64) {}
	}
	w, err := archive.Create(r.Output, layout, archive.WriteOptions{Signatures: signatures})
	if err != nil {
		return err
	}
	open := func(_ context.Context, d string) (io.ReadCloser, error) {
		rc, _, err := b.Blob(d)
		if err != nil {
			return nil, err
		}
		return struct {
			io.Reader
			io.Closer
		}{&meter{r: rc, err: ctx.Err, add: progress}, rc}, nil
	}
	g, stored := errgroup.WithContext(ctx)
	g.SetLimit(max(r.Parallel, 1))
	for _, d := range w.Missing() {
		g.Go(func() error {
			rc, err := open(stored, d)
			if err != nil {
				return err
			}
			return errors.Join(w.WriteStored(stored, d, rc), rc.Close())
		})
	}
	if err := g.Wait(); err != nil {
		return errors.Join(err, w.Abort())
	}
	if err := w.Close(ctx, open); err != nil {
		return errors.Join(err, w.Abort())
	}
	return nil
}
