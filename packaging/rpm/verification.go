package rpm

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"

	"github.com/mensylisir/kubexm/packaging"
)

// Verification returns how the digest of a package is verified: signed reports whether its
// metadata is signed; keys are those for the package's own signature, for Check. If
// neither is available, keys is empty.
func (m *Metadata) Verification(p *packaging.Package) (signed bool, keys Keys) {
	for _, r := range m.readers {
		switch {
		case r.ID != p.Repository:
		case r.signed:
			return true, Keys{}
		case r.SignedPackages:
			return false, r.keys
		}
	}
	return false, Keys{}
}

// Check reads and verifies a package file like the function Check, and sets the package's
// SHA256, which the metadata may lack.
func (m *Metadata) Check(ctx context.Context, web packaging.Web, p *packaging.Package, keys Keys) error {
	sum := sha256.New()
	from := place{web, []string{m.base(p.Repository)}}
	err := from.open(ctx, strings.TrimSuffix(from.bases[0], "/")+"/"+p.Location, func(r io.Reader) error {
		return Check(io.TeeReader(r, sum), p, keys)
	})
	if err != nil {
		return fmt.Errorf("repository %s: %w", p.Repository, err)
	}
	p.SHA256 = fmt.Sprintf("%x", sum.Sum(nil))
	return nil
}
