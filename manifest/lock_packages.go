package manifest

import (
	"slices"
	"strings"
)

// Package is one package of a repository, as its own tools name it.
type Package struct {
	Name    string // "socat"
	Version string // whole, with epoch and release: "1.7.4.4-2"
	Arch    string // in the distribution's words: "amd64", "all", "noarch"
	Member
}

// PackageList lists the packages of a repository, by name, version and architecture;
// its metadata is not among them.
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
