package rpm

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/packaging"
)

// order sorts alternative packages in the order of dnf's solver (libsolv's policy.c): the
// latest of each name, without packages that are obsoleted by another or have a later
// version; then those that provide the same in a later version, then by name.
func order(latest map[string]string) func([]*packaging.Package) {
	return func(all []*packaging.Package) {
		if len(all) < 2 {
			return
		}
		slices.SortStableFunc(all, func(a, b *packaging.Package) int {
			return cmp.Or(strings.Compare(a.Name, b.Name), Compare(b.Version, a.Version))
		})
		var first []*packaging.Package // the latest of each name
		for i, p := range all {
			if i == 0 || p.Name != all[i-1].Name {
				first = append(first, p)
			}
		}
		rank := map[*packaging.Package]int{}
		late := lateness(first)
		for _, p := range all {
			switch {
			case !slices.Contains(first, p):
				rank[p] = 3
			case slices.ContainsFunc(first, func(x *packaging.Package) bool { return replaces(x, p) && !replaces(p, x) }):
				rank[p] = 2
			case Compare(p.Version, latest[p.Name]) < 0:
				rank[p] = 1
			}
		}
		slices.SortStableFunc(all, func(a, b *packaging.Package) int {
			return cmp.Or(cmp.Compare(rank[a], rank[b]), cmp.Compare(late[a], late[b]))
		})
	}
}

// replaces reports whether a obsoletes b.
func replaces(a, b *packaging.Package) bool {
	return a.Name != b.Name && slices.ContainsFunc(a.Obsoletes, func(r packaging.Relation) bool {
		return r.Name == b.Name && meets(packaging.Relation{Name: b.Name, Operator: packaging.Exactly, Version: b.Version}, r)
	})
}

// lateness counts for each package how many of its provided names other packages provide
// in a later version.
func lateness(all []*packaging.Package) map[*packaging.Package]int {
	type version struct {
		of *packaging.Package
		as string
	}
	by := map[string][]version{}
	for _, p := range all {
		for _, r := range p.Provides {
			if r.Operator == packaging.Exactly && !looksLikeHash(r.Version) {
				by[r.Name] = append(by[r.Name], version{p, r.Version})
			}
		}
	}
	late := map[*packaging.Package]int{}
	for _, versions := range by {
		slices.SortStableFunc(versions, func(a, b version) int { return Compare(b.as, a.as) })
		steps := 0
		for i, v := range versions {
			if i > 0 && versions[i-1].of != v.of && Compare(versions[i-1].as, v.as) > 0 {
				steps++
			}
			late[v.of] += steps
		}
	}
	return late
}

// looksLikeHash is libsolv's test for versions that have no order.
func looksLikeHash(version string) bool {
	return len(version) >= 4 && strings.Trim(version, "0123456789abcdef") == ""
}
