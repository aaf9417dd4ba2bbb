package bundle

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/bundle/delta"
	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/manifest"
)

// Fetcher downloads what a lock pins: into the cache, or as a stream past it. The methods
// that return functions return nil where content can only be fetched into the cache. *fetch.Client implements it.
type Fetcher interface {
	FetchArtifact(ctx context.Context, a manifest.Artifact) error
	// FetchMember downloads one file of a package repository.
	FetchMember(ctx context.Context, a manifest.Artifact, m manifest.Member) error
	ImageContent(ctx context.Context, im manifest.ImagePin) ([]fetch.Content, error)
	FetchContent(ctx context.Context, im manifest.ImagePin, c fetch.Content) error

	StreamArtifact(a manifest.Artifact) fetch.Stream
	UnpackArtifact(a manifest.Artifact) fetch.Unpack
	StreamMember(a manifest.Artifact, m manifest.Member) fetch.Stream
	StreamContent(im manifest.ImagePin, c fetch.Content) fetch.Stream
}

// job downloads some blobs into the cache: those of one artifact, one file of a package
// repository, or one blob of an image.
type job struct {
	name  string
	size  int64 // bytes to download, if the lock states them
	part  delta.Part
	blobs []archive.Blob
	fetch func(context.Context) error

	stream fetch.Stream // downloads the only blob past the cache; nil if that is not possible
	unpack fetch.Unpack // downloads the blobs as entries of an archive, past the cache; or nil
	keep   bool         // the blobs stay in the cache: they are small, and later builds read them
}

// jobs returns the downloads for l; each blob is in exactly one job. The images' manifests
// are fetched here, because they list the layers.
func jobs(ctx context.Context, f Fetcher, l *manifest.Lock, parallel int) ([]job, error) {
	var all []job
	for _, a := range l.Artifacts {
		if a.Kind == manifest.Packages {
			all = append(all, packageJobs(f, a)...)
			continue
		}
		j := job{name: a.ID, size: a.Size, keep: a.Kind == manifest.Chart, stream: f.StreamArtifact(a), unpack: f.UnpackArtifact(a),
			fetch: func(ctx context.Context) error { return f.FetchArtifact(ctx, a) }}
		for _, b := range a.Blobs() {
			j.blobs = append(j.blobs, archive.Blob{Digest: "sha256:" + b.SHA256, Size: b.Size, Compress: compressFile(a, b)})
		}
		all = append(all, j)
	}
	contents := make([][]fetch.Content, len(l.Images))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(max(parallel, 1))
	for i, im := range l.Images {
		g.Go(func() (err error) {
			contents[i], err = f.ImageContent(gctx, im)
			if err != nil {
				return fmt.Errorf("%s: %w", im.ID, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for i, im := range l.Images {
		for _, c := range contents[i] {
			part := delta.Document
			if c.Role == fetch.LayerRole {
				part = delta.Layer
			}
			all = append(all, job{
				name: im.Reference, size: c.Size, part: part,
				blobs: []archive.Blob{{Digest: c.Digest, Size: c.Size, Compress: compressContent(c.MediaType)}},
				fetch: func(ctx context.Context) error { return f.FetchContent(ctx, im, c) }, stream: f.StreamContent(im, c), keep: c.Role != fetch.LayerRole,
			})
		}
	}
	return distinct(all)
}

// withoutDocuments drops the blobs that are already in the head. An artifact may have the
// same bytes as a generated document, for example OCI's empty config.
func withoutDocuments(h *head, all []job) []job {
	made := map[string]bool{h.root.descriptor.Digest.String(): true}
	for _, d := range slices.Concat(h.metadata, h.artifacts) {
		made[d.descriptor.Digest.String()] = true
	}
	var out []job
	for _, j := range all {
		j.blobs = slices.DeleteFunc(slices.Clone(j.blobs), func(b archive.Blob) bool { return made[b.Digest] })
		if len(j.blobs) > 0 {
			out = append(out, j)
		}
	}
	return out
}

// distinct drops blobs that an earlier job already downloads, and jobs without blobs.
func distinct(all []job) ([]job, error) {
	sizes := map[string]int64{}
	var out []job
	for _, j := range all {
		var own []archive.Blob
		for _, b := range j.blobs {
			n, twice := sizes[b.Digest]
			if twice && n != b.Size {
				return nil, fmt.Errorf("%s: blob %s is listed with both %d and %d bytes", j.name, b.Digest, b.Size, n)
			}
			if !twice {
				own = append(own, b)
			}
			sizes[b.Digest] = b.Size
		}
		if j.blobs = own; len(own) > 0 {
			out = append(out, j)
		}
	}
	return out, nil
}
