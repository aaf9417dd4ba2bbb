package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/bundle/delta"
	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/manifest"
)

// BuildRequest specifies what to build and where.
type BuildRequest struct {
	Lock     *manifest.Lock
	Config   []byte // the cluster config without secrets; its sha256 is Lock.Config
	Output   string // the archive's path; written to a temporary file beside it, then renamed
	Cache    *fetch.Cache
	Fetcher  Fetcher
	Parallel int // blobs fetched and written at once; at least 1

	// KeepCache keeps a copy of everything in the cache, for machines that delete their
	// archives.
	KeepCache bool

	// Volumes, if it has a size, splits the archive into Output.001, Output.002 and so on.
	Volumes archive.VolumeOptions

	// Since, if set, builds a delta: blobs that this site has are neither fetched nor
	// included.
	Since *manifest.Inventory

	// Sign, if set, returns the lines of the signature slot for the bundle's root. Volumes
	// can be signed in this way only.
	Sign func(root digest.Digest) ([][]byte, error)

	// Planned, if set, is called with the plan before payload is downloaded or written.
	Planned func(Plan)

	Log *slog.Logger // nil discards logs
}

// Plan describes the work of a build.
type Plan struct {
	Blobs    int   // distinct blobs
	Bytes    int64 // total size of the blobs
	Cached   int64 // bytes of the blobs that are already on this machine
	Download int64 // bytes to download; an archive of files may be smaller than the entries selected from it
	Space    []Space
}

// BuildResult is the result of a build.
type BuildResult struct {
	Path    string         `json:"path"`              // of the first volume, if the archive is in volumes
	Root    digest.Digest  `json:"root"`              // digest of the root index: the bundle's identity
	Bytes   int64          `json:"bytes"`             // size of the archive
	Volumes int            `json:"volumes,omitempty"` // number of data volumes, without parity
	Delta   *delta.Savings `json:"delta,omitempty"`   // nil for a complete bundle
}

// Build writes the archive of r.Lock. The same lock and config give the same bytes,
// independent of parallelism and the state of the cache. If Build fails or is cancelled, no
// new file exists at r.Output. What was downloaded stays in the unfinished archive beside it,
// which the next Build of the same output continues; the error is then an *UnfinishedError.
func Build(ctx context.Context, r BuildRequest) (*BuildResult, error) {
	if got := digest.FromBytes(r.Config).String(); got != r.Lock.Config {
		return nil, fmt.Errorf("config has digest %s, the lock is for a config with digest %s", got, r.Lock.Config)
	}
	h, err := newHead(r.Lock, r.Config)
	if err != nil {
		return nil, err
	}
	var slot []byte
	if r.Sign != nil {
		lines, err := r.Sign(h.root.descriptor.Digest)
		if err != nil {
			return nil, err
		}
		for _, line := range lines {
			slot = append(append(slot, line...), '\n')
		}
	}
	return assemble(ctx, r, h, slot)
}

// assemble writes the archive from a head and the blobs that r.Lock pins.
func assemble(ctx context.Context, r BuildRequest, h *head, signatures []byte) (*BuildResult, error) {
	if r.Log == nil {
		r.Log = slog.New(slog.DiscardHandler)
	}
	all, err := jobs(ctx, r.Fetcher, r.Lock, r.Parallel)
	if err != nil {
		return nil, err
	}
	all = withoutDocuments(h, all)
	var saved *delta.Savings
	if r.Since != nil {
		if all, saved, err = leaveOutHeld(r.Since, r.Lock, h, all); err != nil {
			return nil, err
		}
	}
	layout, err := layoutOf(h, all)
	if err != nil {
		return nil, err
	}
	left, err := r.unfinished(ctx, layout)
	if err != nil {
		return nil, err
	}
	from, err := openSources(ctx, r.Cache, r.Log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.close() }() // opened for reading only
	plan := planOf(r, all, layout, from, left)
	if err := checkSpace(plan.Space); err != nil {
		return nil, err
	}
	if r.Planned != nil {
		r.Planned(plan)
	}
	b := &builder{BuildRequest: r, sources: from, jobs: all}
	b.writer, err = archive.Create(r.Output, layout, archive.WriteOptions{VolumeOptions: r.Volumes, Signatures: signatures, Resume: true})
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", r.Output, err)
	}
	if err := b.fill(ctx, h); err != nil {
		return nil, b.suspend(err)
	}
	if err := b.writer.Close(ctx, nil); err != nil {
		return nil, b.suspend(fmt.Errorf("finish %s: %w", r.Output, err))
	}
	done, err := built(r, h.root.descriptor.Digest)
	if err != nil {
		return nil, err
	}
	done.Delta = saved
	if err := r.Cache.Remember(fetch.Archive{Path: done.Path, Root: done.Root.String(), Compressor: archive.Compressor()}); err != nil {
		r.Log.WarnContext(ctx, "later builds will not find this bundle and may download again", "error", err)
	}
	return done, nil
}

// UnfinishedError is the failure of a build of which something is kept.
type UnfinishedError struct {
	Path  string // the unfinished archive, of an archive in volumes without their numbers
	Bytes int64  // bytes of content in it
	Err   error
}

// Error returns the failure's text.
func (e *UnfinishedError) Error() string { return e.Err.Error() }

// Unwrap returns the failure.
func (e *UnfinishedError) Unwrap() error { return e.Err }

// suspend keeps what was downloaded before the failure err.
func (b *builder) suspend(err error) error {
	kept, serr := b.writer.Suspend()
	err = errors.Join(err, serr)
	if kept == 0 {
		return err
	}
	return &UnfinishedError{Path: archive.PartialPath(b.Output), Bytes: kept, Err: err}
}

// unfinished returns what an earlier build left at r.Output. The complete blobs of another
// bundle go into the cache, from which this build takes what it needs.
func (r *BuildRequest) unfinished(ctx context.Context, l *archive.Layout) (*archive.Unfinished, error) {
	left, err := archive.FindUnfinished(r.Output, l, r.Volumes)
	if err != nil || left == nil || left.Continues() {
		return left, err
	}
	r.Log.InfoContext(ctx, "an earlier build of another bundle was not finished, its downloads go into the cache", "path", archive.PartialPath(r.Output))
	return nil, archive.Salvage(r.Output, func(digest string, size int64, content io.Reader) error {
		return r.Cache.Put(ctx, hexOf(digest), size, content)
	})
}

// built describes the archive that was written.
func built(r BuildRequest, root digest.Digest) (*BuildResult, error) {
	b := &BuildResult{Path: filepath.Clean(r.Output), Root: root}
	if r.Volumes.VolumeSize > 0 {
		b.Path += FirstVolume
		t, err := archive.Volumes(b.Path)
		if err != nil {
			return nil, err
		}
		b.Bytes, b.Volumes = t.Size, len(t.Volumes)
		return b, nil
	}
	info, err := os.Stat(r.Output)
	if err != nil {
		return nil, err
	}
	b.Bytes = info.Size()
	return b, nil
}

// layoutOf computes the place of the head and of every blob in the archive.
func layoutOf(h *head, all []job) (*archive.Layout, error) {
	contents := [][]byte{h.root.bytes}
	for _, d := range h.metadata {
		contents = append(contents, d.bytes)
	}
	var blobs []archive.Blob
	for _, d := range h.artifacts {
		blobs = append(blobs, archive.Blob{Digest: d.descriptor.Digest.String(), Size: int64(len(d.bytes))})
	}
	for _, j := range all {
		blobs = append(blobs, j.blobs...)
	}
	return archive.NewLayout(ociLayout, h.index, contents, blobs)
}

func hexOf(d string) string { return digest.Digest(d).Encoded() }
