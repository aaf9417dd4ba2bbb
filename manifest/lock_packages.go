package manifest

import (
	"slices"
	"strings"
)

// Package is one package of a repository, with the names that the package manager uses.
type Package struct {
	Name    string // "socat"
	Version string // complete, with epoch and release: "1.7.4.4-2"
	Arch    string // the distribution's name of it: "amd64", "all", "noarch"
	Member
}

// PackageList lists the packages of a repository, sorted by name, version and architecture,
// without the repository's metadata files.
func (a Artifact) PackageList() []Package {
	var all []Package
	for _, m := range a.Members {
		if m.Package == "" {
			continue
		}
		p := Package{Member: m}
		rest, arch, _ := strings.Cut(m.Package, " (")
		p.Arch = strings.TrimSuffix(arch, ")")
		p.Name, p.Version, _ = strings.Cut(rest, " ")
		all = append(all, p)
	}
	slices.SortFunc(all, func(x, y Package) int { return strings.Compare(x.Package, y.Package) })
	return all
}
