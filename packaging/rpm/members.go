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

// Members returns packages of this metadata as members of a new repository: with their
// paths there and in their repository, and their metadata. The metadata includes the files
// of the package that other packages of these repositories require.
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

// Address returns the URL of a package file, at the mirror that its metadata is from and
// without a password. Some programs escape the location in metadata; most do not.
func (m *Metadata) Address(p *packaging.Package) string {
	location := p.Location
	if plain, err := url.PathUnescape(location); err == nil {
		location = plain
	}
	return packaging.Address(m.base(p.Repository), location)
}

// Base returns the URL that a repository's metadata was read from, without a password.
func (m *Metadata) Base(id string) string { return packaging.Public(m.base(id)) }

func (m *Metadata) base(id string) string {
	for _, r := range m.readers {
		if r.ID == id {
			return r.base
		}
	}
	return ""
}

// Date returns the creation time of the newest metadata; zero if it is unknown.
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

// placed returns the path of a package in the new repository. The file has rpm's standard
// name, without the epoch, whatever its name is in its own repository.
func placed(p *packaging.Package) (string, error) {
	_, version, ok := strings.Cut(p.Version, ":")
	if !ok {
		version = p.Version
	}
	name := p.Name + "-" + version + "." + p.Arch + ".rpm"
	if path.Base(name) != name || !plain(name) {
		return "", fmt.Errorf("%q is not a valid file name", name)
	}
	return "Packages/" + name, nil
}
