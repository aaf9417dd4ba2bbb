package rpm

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/packaging"
)

// Members gives packages of this metadata as a repository of their own has them:
// where each lies there and at its repository, and what the metadata says of it, with
// the files in it that others of all these repositories asked for.
func (m *Metadata) Members(packages []*packaging.Package) ([]manifest.Member, error) {
	out := make([]manifest.Member, 0, len(packages))
	for _, p := range packages {
		at, err := placed(p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		record, err := relocated(p, at)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		out = append(out, manifest.Member{Path: at, Name: at, Size: p.Size, SHA256: p.SHA256, Package: p.String(), Address: m.Address(p), Record: record})
	}
	return out, nil
}

// Address gives where the file of a package is, at the address that its metadata
// came from.
func (m *Metadata) Address(p *packaging.Package) string {
	return strings.TrimSuffix(m.Base(p.Repository), "/") + "/" + p.Location
}

// Base gives the address that a repository's metadata came from.
func (m *Metadata) Base(id string) string {
	for _, r := range m.readers {
		if r.ID == id {
			return r.base
		}
	}
	return ""
}

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

// Date tells when the youngest of the metadata was made; zero where none of it says so.
func (m *Metadata) Date() time.Time {
	last := int64(0)
	for _, r := range m.readers {
		for _, f := range r.listed {
			last = max(last, f.Time)
		}
	}
	if last == 0 {
		return time.Time{}
	}
	return time.Unix(last, 0).UTC()
}

// placed gives where a package lies in a repository of some packages. It is called
// as rpm calls it, whatever it is called where it is from; the epoch is not part of that.
func placed(p *packaging.Package) (string, error) {
	_, version, ok := strings.Cut(p.Version, ":")
	if !ok {
		version = p.Version
	}
	name := p.Name + "-" + version + "." + p.Arch + ".rpm"
	if path.Base(name) != name || !plain(name) {
		return "", fmt.Errorf("%q is no name for a file", name)
	}
	return "Packages/" + name, nil
}
