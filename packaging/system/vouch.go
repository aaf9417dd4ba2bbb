package system

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/packaging"
	"github.com/mensylisir/kubexm/packaging/rpm"
)

// atOnce is how many packages are read at the same time.
const atOnce = 4

// vouch looks who vouches for each package: its metadata's signature or its own.
// Where metadata is not signed and packages are, each of their files is read here, so
// that what the lock says was vouched for; and so is one of which only a SHA512 is known.
func (p *pinning) vouch(ctx context.Context, metadata *rpm.Metadata, packages []*packaging.Package) error {
	p.artifact.Trust = manifest.FromPublished
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for _, x := range packages {
		signed, keys := metadata.Vouched(x)
		if !signed && keys.Empty() {
			p.artifact.Trust = manifest.FromContent
			if x.SHA256 != "" {
				continue
			}
		}
		if signed && x.SHA256 != "" {
			continue
		}
		g.Go(func() error { return metadata.Check(ctx, p.web, x, keys) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if p.artifact.Trust == manifest.FromContent {
		p.note("nobody vouches for some of its packages: give the repositories' keys, with gpgcheck=1 or repo_gpgcheck=1")
	}
	return nil
}
