package apt

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/packaging"
)

// carried are the fields of a package's record that go along: what apt needs to
// know of a package that it has not got yet, and what it compares with an installed
// one of the same version to tell whether that is the same package (its
// Installed-Size and what it needs and rules out). The rest dpkg reads from the
// package. What else a package recommends or suggests is not carried, and neither
// is Phased-Update-Percentage, by which apt would hold a package back.
var carried = []string{"Package", "Version", "Architecture", "Multi-Arch", "Essential", "Important", "Protected", "Priority", "Section", "Source",
	"Installed-Size", "Pre-Depends", "Depends", "Provides", "Conflicts", "Breaks", "Replaces", "Description"}

// Members gives packages of this archive's universe as a repository of their own
// has them: where each lies there and in this archive, and what of its record apt needs.
func (a *Archive) Members(packages []*packaging.Package) ([]manifest.Member, error) {
	if err := a.Fill(packages); err != nil {
		return nil, err
	}
	out := make([]manifest.Member, 0, len(packages))
	for _, p := range packages {
		m, err := member(p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		m.Address = a.Address(p)
		out = append(out, m)
	}
	return out, nil
}

func member(p *packaging.Package) (manifest.Member, error) {
	record, err := slim(p.Record)
	if err != nil {
		return manifest.Member{}, err
	}
	at, err := poolPath(p)
	return manifest.Member{Path: at, Name: at, Size: p.Size, SHA256: p.SHA256, Package: p.String(), Record: record}, err
}

// slim gives what of a record is carried. Of the description that is its first line.
func slim(record []byte) (string, error) {
	var out bytes.Buffer
	err := eachField(bytes.ToValidUTF8(record, []byte("?")), func(f field) error {
		if !slices.Contains(carried, string(f.name)) {
			return nil
		}
		if string(f.name) == "Description" {
			f.value, _, _ = bytes.Cut(f.value, []byte("\n"))
			f.value = bytes.Map(func(r rune) rune {
				if breaksLine(r) {
					return ' '
				}
				return r
			}, f.value)
		}
		return writeField(&out, f)
	})
	return out.String(), err
}

// poolPath gives where a package lies in a repository of some packages. The epoch of
// its version is not part of a file's name, as it is not of the distribution's own.
func poolPath(p *packaging.Package) (string, error) {
	_, version, ok := strings.Cut(p.Version, ":")
	if !ok {
		version = p.Version
	}
	name := p.Name + "_" + version + "_" + p.Arch + ".deb"
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("+-._~", r)
	}
	if strings.ContainsFunc(name, odd) {
		return "", fmt.Errorf("%q is no name for a file", name)
	}
	return "pool/" + name, nil
}
