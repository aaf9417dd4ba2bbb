package apt

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/packaging"
)

// carried lists the fields of a package's record that are included in the repository.
// They are those that apt needs before it downloads a package, and those that it compares
// with an installed package of the same version to decide whether both are the same
// (Installed-Size, dependencies and conflicts). dpkg reads all other fields from the
// package. Recommends and Suggests are left out, and so is Phased-Update-Percentage,
// which would make apt defer an update.
var carried = []string{"Package", "Version", "Architecture", "Multi-Arch", "Essential", "Important", "Protected", "Priority", "Section", "Source",
	"Installed-Size", "Pre-Depends", "Depends", "Provides", "Conflicts", "Breaks", "Replaces", "Description"}

// Members returns packages of this archive's universe as members of a new repository:
// with their paths there and in this archive, and the record that apt needs.
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

// slim returns the included fields of a record, and only the first line of its
// description.
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

// poolPath returns the path of a package in the new repository. As in Debian, the file
// name does not contain the epoch.
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
		return "", fmt.Errorf("%q is not a valid file name", name)
	}
	return "pool/" + name, nil
}
