package bundle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/bundle/delta"
	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/manifest"
)

// BuildRequest says what to build and where.
type BuildRequest struct {
	Lock     *manifest.Lock
	Config   []byte // the cluster config without secrets; its sha256 is Lock.Config
	Output   string // the archive's path; written beside it first, and renamed
	Cache    *fetch.Cache
	Fetcher  Fetcher
	Parallel int // blobs fetched and written at once; at least 1

	// Volumes, with a size, writes Output.001, Output.002 and so on.
	Volumes archive.VolumeOptions

	// Since, if set, makes a delta: what that site holds is left out, and not fetched.
	Since *manifest.Inventory

	// Sign, if set, gives the lines of the signature slot for the bundle's root.
	// Volumes can be signed in this way alone.
	Sign func(root digest.Digest) ([][]byte, error)

	// Planned, if set, is told what is to be done before a byte of payload moves.
	Planned func(Plan)
}

// Plan is what a build will do.
type Plan struct {
	Blobs    int   // distinct blobs
	Bytes    int64 // their bytes
	Cached   int64 // bytes of them that the cache holds already
	Download int64 // bytes to download: an archive of files may be smaller than what is wanted of it
	Space    []Space
}

// Built says what came of it.
type Built struct {
	Path    string        `json:"path"`              // of the first volume, where it is in volumes
	Root    digest.Digest `json:"root"`              // digest of the root index: the bundle's identity
	Bytes   int64         `json:"bytes"`             // size of the archive
	Volumes int           `json:"volumes,omitempty"` // how many, without those of parity
	Delta   *delta.Saved  `json:"delta,omitempty"`   // nil of a whole bundle
}

// Build writes the archive that r.Lock pins. Equal lock and config give equal
// bytes, whatever the parallelism and the state of the cache. When it fails or
// is stopped, nothing stands at r.Output that did not stand there before, and
// what was fetched stays in the cache.
func Build(ctx context.Context, r BuildRequest) (*Built, error) {
	if got := digest.FromBytes(r.Config).String(); got != r.Lock.Config {
		return nil, fmt.Errorf("config has digest %s, the lock was made for %s", got, r.Lock.Config)
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

// assemble writes the archive of a head and of what r.Lock pins.
func assemble(ctx context.Context, r BuildRequest, h *head, signatures []byte) (*Built, error) {
	all, err := jobs(ctx, r.Fetcher, r.Lock, r.Parallel)
	if err != nil {
		return nil, err
	}
	all = besides(h, all)
	var saved *delta.Saved
	if r.Since != nil {
		if all, saved, err = since(r.Since, r.Lock, h, all); err != nil {
			return nil, err
		}
	}
	layout, err := layoutOf(h, all)
	if err != nil {
		return nil, err
	}
	plan := planOf(r, all, layout)
	if err := checkSpace(plan.Space); err != nil {
		return nil, err
	}
	if r.Planned != nil {
		r.Planned(plan)
	}
	w, err := archive.Create(r.Output, layout, archive.WriteOptions{VolumeOptions: r.Volumes, Signatures: signatures})
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", r.Output, err)
	}
	if err := newBuilder(r, w, all).fill(ctx, h); err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	if err := w.Close(ctx, nil); err != nil {
		return nil, fmt.Errorf("finish %s: %w", r.Output, errors.Join(err, w.Abort()))
	}
	done, err := built(r, h.root.descriptor.Digest)
	if done != nil {
		done.Delta = saved
	}
	return done, err
}

// built looks at what was written.
func built(r BuildRequest, root digest.Digest) (*Built, error) {
	b := &Built{Path: filepath.Clean(r.Output), Root: root}
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

// layoutOf places the head and every blob in the archive.
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
