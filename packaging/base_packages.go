package packaging

import (
	"slices"
	"strings"
)

// SelectBase returns the base packages that must be included with a solution, and those that
// it needs but that can be left out, both sorted by name.
//
// A package may depend on a base package of the same patch level, which a host with an
// older installation does not have. So such base packages are included, and also the base
// packages that depend on exactly one version of an included one, and so on. Left are the
// other base packages that the included ones need, in the version of the host.
func (u *Universe) SelectBase(s *Solution, base []*Package) (along, left []*Package) {
	inBase := map[*Package]bool{}
	for _, p := range base {
		inBase[p] = true
	}
	bound := map[*Package][]*Package{} // → base packages that depend on exactly this version
	for _, p := range base {
		for _, x := range u.tied(p, inBase, exactly) {
			bound[x] = append(bound[x], p)
		}
	}
	seen := map[*Package]bool{}
	for open := slices.Clone(s.Add); len(open) > 0; open = open[1:] {
		for _, x := range slices.Concat(u.tied(open[0], inBase, ties), bound[open[0]]) {
			if !seen[x] {
				seen[x] = true
				along, open = append(along, x), append(open, x)
			}
		}
	}
	left = slices.DeleteFunc(slices.Clone(s.Held), func(p *Package) bool { return seen[p] })
	for _, p := range along {
		for _, q := range p.Requires {
			if x := u.fromBase(q, inBase); x != nil && !seen[x] && !slices.Contains(left, x) {
				left = append(left, x)
			}
		}
	}
	slices.SortFunc(along, byName)
	slices.SortFunc(left, byName)
	return along, left
}

// tied returns the base packages that p requires in a particular version, as decided by
// ties.
func (u *Universe) tied(p *Package, inBase map[*Package]bool, ties func(Relation, *Package) bool) []*Package {
	var out []*Package
	for _, q := range p.Requires {
		var only []*Package
		loose := false // any version is sufficient
		for _, r := range q.Any {
			for _, x := range u.Find(r) {
				if inBase[x] && x != p {
					only = append(only, x)
					loose = loose || !ties(r, x)
				}
			}
		}
		if !loose {
			out = append(out, only...)
		}
	}
	return out
}

// exactly reports whether exactly one version of a package is required.
func exactly(asked Relation, _ *Package) bool { return asked.Operator == Exactly }

// ties reports whether a relation depends on the patch level of a package, which is the
// part of a version after the last hyphen: "= 2.36-9", or ">= 2.36-9" for version 2.36-12.
// Every host has a version of 2.36, whatever its patch level is.
func ties(asked Relation, p *Package) bool {
	if asked.Operator != AtLeast && asked.Operator != Later {
		return exactly(asked, p)
	}
	i, j := strings.LastIndexByte(asked.Version, '-'), strings.LastIndexByte(p.Version, '-')
	return i >= 0 && j >= 0 && asked.Version[:i] == p.Version[:j]
}

// fromBase returns the base package that meets a requirement, or nil.
func (u *Universe) fromBase(q Requirement, inBase map[*Package]bool) *Package {
	for _, r := range q.Any {
		for _, x := range u.Find(r) {
			if inBase[x] {
				return x
			}
		}
	}
	return nil
}
