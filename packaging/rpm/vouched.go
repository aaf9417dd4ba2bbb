package rpm

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"

	"github.com/mensylisir/kubexm/packaging"
)

// Vouched tells who vouches for the digest of a package: the metadata that has it,
// being signed; or the package's own signature, which Check looks at with these keys.
// Where neither does there are no keys.
func (m *Metadata) Vouched(p *packaging.Package) (signed bool, keys Keys) {
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

// Check reads the file of a package, as the function of that name does, and sets the
// package's SHA256, which metadata need not have.
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
