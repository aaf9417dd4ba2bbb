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

// ErrNotDelta means that the archive is a complete bundle, not a delta.
var ErrNotDelta = errors.New("is a complete bundle and needs no base")

// CompleteRequest specifies the delta to complete and its bases.
type CompleteRequest struct {
	Delta    string   // the archive, or the first of its volumes
	Policy   Policy   // checks the root before anything else is read
	Bases    []string // archives that contain the blobs that the delta leaves out
	Output   string   // path of the complete archive; written to a temporary file beside it, then renamed
	Parallel int
	Progress func(int64)       // receives the bytes of blobs read since the last call; may be nil
	Planned  func(bytes int64) // receives the total number of bytes before the first read; may be nil
}

// Complete writes the complete bundle of a delta. The bytes are those of a build from the
// same lock. The delta's signatures are included; they are valid for the complete bundle
// too.
func Complete(ctx context.Context, r CompleteRequest) (*BuildResult, error) {
	b, err := OpenPartial(ctx, r.Delta, r.Policy, Bases{Explicit: r.Bases})
	if err != nil {
		return nil, err
	}
	defer func() { _ = b.Close() }() // read only: nothing to lose
	if b.Delta == nil {
		return nil, fmt.Errorf("%s %w", r.Delta, ErrNotDelta)
	}
	if err := b.CheckComplete(); err != nil {
		return nil, err
	}
	layout, err := b.completeLayout()
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
	if err := b.writeComplete(ctx, r, layout); err != nil {
		return nil, fmt.Errorf("complete %s: %w", r.Delta, err)
	}
	return built(BuildRequest{Output: r.Output}, b.Root.Digest)
}

// completeLayout computes the layout of the complete bundle as Build does, from the delta's
// head and all blobs. The lock determines which blobs are compressed.
func (b *Bundle) completeLayout() (*archive.Layout, error) {
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

func (b *Bundle) writeComplete(ctx context.Context, r CompleteRequest, layout *archive.Layout) error {
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
