package system

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/packaging"
	"github.com/mensylisir/kubexm/packaging/rpm"
)

// atOnce is the number of packages that are read in parallel.
const atOnce = 4

// verify sets the artifact's trust from the signatures of metadata and packages. If the
// metadata is not signed but packages are, each package file is read and verified, so that
// the digests in the lock are from signed content. A package of which only a SHA512 is
// known is read too.
func (p *pinning) verify(ctx context.Context, metadata *rpm.Metadata, packages []*packaging.Package) error {
	p.artifact.Trust = manifest.FromPublished
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for _, x := range packages {
		signed, keys := metadata.Verification(x)
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
		p.note("some of its packages have no signature that can be verified: set the repositories' keys, with gpgcheck=1 or repo_gpgcheck=1")
	}
	return nil
}
