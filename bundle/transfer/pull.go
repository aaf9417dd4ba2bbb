package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/manifest"
)

// PullRequest specifies what to pull, and the output.
type PullRequest struct {
	From     Remote
	Policy   bundle.Policy // checks the root before anything else is fetched
	Output   string        // the archive's path; written to a temporary file beside it, then renamed
	Cache    *fetch.Cache
	Client   Registry // a client for From.Sources()
	Parallel int

	KeepCache bool // keep a copy of everything in the cache

	// Planned, if set, is called with the plan before payload is downloaded.
	Planned func(bundle.Plan)

	Log *slog.Logger // nil discards logs
}

// ErrNoBundle means that the registry has no such tag.
var ErrNoBundle = errors.New("no such bundle in the registry")

// Pull writes a complete bundle of a registry, with its signatures, to an archive. The root
// keeps its digest. The archive has the bytes that were pushed if the same version of
// kubexm built it, because versions may differ in what they compress. An interrupted pull is
// continued like an interrupted build.
func Pull(ctx context.Context, r PullRequest) (*bundle.BuildResult, error) {
	repo, err := r.From.repository()
	if err != nil {
		return nil, err
	}
	root, err := repo.Resolve(ctx, repo.Reference.Reference)
	if errors.Is(err, errdef.ErrNotFound) {
		return nil, fmt.Errorf("%s: %w", r.From.Reference, ErrNoBundle)
	}
	if err != nil {
		return nil, fmt.Errorf("request %s: %w", r.From.Reference, err)
	}
	if root.MediaType != v1.MediaTypeImageIndex {
		return nil, &bundle.FormatError{Code: bundle.CodeDocument, What: fmt.Sprintf("%s is a %s", r.From.Reference, root.MediaType)}
	}
	signatures, err := pulledSignatures(ctx, repo, root)
	if err != nil {
		return nil, err
	}
	p := &puller{PullRequest: r, pin: manifest.ImagePin{Reference: r.From.Reference}}
	from := bundle.Published{Name: r.From.Reference, Root: plain(root), Signatures: signatures, Document: p.document}
	return bundle.Copy(ctx, from, r.Policy, bundle.BuildRequest{
		Output: r.Output, Cache: r.Cache, Fetcher: p, Parallel: r.Parallel, Planned: r.Planned, KeepCache: r.KeepCache, Log: r.Log,
	})
}

// mediaFile is the media type of a blob without its own type.
const mediaFile = "application/octet-stream"

// puller is the state of one Pull. As a Fetcher it fetches everything from one repository.
type puller struct {
	PullRequest
	pin manifest.ImagePin // the repository, as a pin for the client
}

// document fetches a small blob into the cache and reads it, checked.
func (p *puller) document(ctx context.Context, d v1.Descriptor, role fetch.Role) ([]byte, error) {
	for again := range 2 {
		if err := p.FetchContent(ctx, p.pin, fetch.Content{Digest: d.Digest.String(), Size: d.Size, MediaType: d.MediaType, Role: role}); err != nil {
			return nil, err
		}
		f, err := p.Cache.Open(d.Digest.Encoded())
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(io.LimitReader(f, d.Size+1))
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		if digest.FromBytes(text) == d.Digest {
			return text, nil
		}
		if again == 0 { // a damaged cache
			if err := p.Cache.Discard(d.Digest.Encoded()); err != nil {
				return nil, err
			}
		}
	}
	return nil, &archive.Error{Code: archive.ErrDigest, Offset: -1, Detail: "document " + d.Digest.String() + " has different content"}
}

// FetchArtifact implements Fetcher: an artifact's files are blobs of the repository.
func (p *puller) FetchArtifact(ctx context.Context, a manifest.Artifact) error {
	for _, b := range a.Blobs() {
		if err := p.FetchContent(ctx, p.pin, fetch.Content{Digest: "sha256:" + b.SHA256, Size: b.Size, MediaType: mediaFile, Role: fetch.LayerRole}); err != nil {
			return err
		}
	}
	return nil
}

// FetchMember implements Fetcher.
func (p *puller) FetchMember(ctx context.Context, _ manifest.Artifact, m manifest.Member) error {
	return p.FetchContent(ctx, p.pin, fetch.Content{Digest: "sha256:" + m.SHA256, Size: m.Size, MediaType: mediaFile, Role: fetch.LayerRole})
}

// ImageContent implements Fetcher.
func (p *puller) ImageContent(ctx context.Context, im manifest.ImagePin) ([]fetch.Content, error) {
	im.Reference = p.pin.Reference
	return p.Client.ImageContent(ctx, im)
}

// FetchContent implements Fetcher.
func (p *puller) FetchContent(ctx context.Context, _ manifest.ImagePin, c fetch.Content) error {
	return p.Client.FetchContent(ctx, p.pin, c)
}

// StreamArtifact implements Fetcher.
func (p *puller) StreamArtifact(a manifest.Artifact) fetch.Stream {
	all := a.Blobs()
	if len(all) != 1 {
		return nil
	}
	return p.streamFile(all[0].SHA256, all[0].Size)
}

// UnpackArtifact implements Fetcher: the entries are blobs of the repository.
func (p *puller) UnpackArtifact(a manifest.Artifact) fetch.Unpack {
	if len(a.Blobs()) < 2 {
		return nil
	}
	return func(ctx context.Context, open fetch.OpenFile) error {
		for _, b := range a.Blobs() {
			f, err := open(ctx, b.SHA256)
			if err != nil || f == nil {
				if err != nil {
					return err
				}
				continue
			}
			err = p.streamFile(b.SHA256, b.Size)(ctx, f)
			if err == nil {
				err = f.Commit()
			}
			if err := errors.Join(err, f.Close()); err != nil {
				return err
			}
		}
		return nil
	}
}

// StreamMember implements Fetcher.
func (p *puller) StreamMember(_ manifest.Artifact, m manifest.Member) fetch.Stream {
	return p.streamFile(m.SHA256, m.Size)
}

func (p *puller) streamFile(sha256 string, size int64) fetch.Stream {
	return p.Client.StreamContent(p.pin, fetch.Content{Digest: "sha256:" + sha256, Size: size, MediaType: mediaFile, Role: fetch.LayerRole})
}

// StreamContent implements Fetcher.
func (p *puller) StreamContent(_ manifest.ImagePin, c fetch.Content) fetch.Stream {
	return p.Client.StreamContent(p.pin, c)
}
