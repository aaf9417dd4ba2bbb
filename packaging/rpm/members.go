package rpm

import (
	"fmt"
	"net/url"
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
// came from; no password is in it. Some programs escape a location, and most do not.
func (m *Metadata) Address(p *packaging.Package) string {
	location := p.Location
	if plain, err := url.PathUnescape(location); err == nil {
		location = plain
	}
	return packaging.Address(m.base(p.Repository), location)
}

// Base gives the address that a repository's metadata came from, without a password.
func (m *Metadata) Base(id string) string { return packaging.Public(m.base(id)) }

func (m *Metadata) base(id string) string {
	for _, r := range m.readers {
		if r.ID == id {
			return r.base
		}
	}
	return ""
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
