package packaging

import (
	"slices"
	"strings"
)

// Carry tells what of a base has to be carried beside a solution, and what of it may
// stay left out, both sorted by name. A package that asks for another of the same
// patch level does not go with a host of an earlier one: so what is asked for in that
// way comes along, and what of the base goes with nothing but the earlier one of what
// comes along, and so on. Left is what the rest needs, in the version that a host has.
func (u *Universe) Carry(s *Solution, base []*Package) (along, left []*Package) {
	inBase := map[*Package]bool{}
	for _, p := range base {
		inBase[p] = true
	}
	bound := map[*Package][]*Package{} // → who of the base goes with nothing but this version of it
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

// tied gives what of a base a package needs, where ties tells that any version of it
// would not do.
func (u *Universe) tied(p *Package, inBase map[*Package]bool, ties func(Relation, *Package) bool) []*Package {
	var out []*Package
	for _, q := range p.Requires {
		var only []*Package
		loose := false // any version would do
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

// exactly tells whether just one version of a package is asked for.
func exactly(asked Relation, _ *Package) bool { return asked.Operator == Exactly }

// ties tells whether what is asked of a package says something of its patch level,
// which is what stands behind the last hyphen of a version: "= 2.36-9", or
// ">= 2.36-9" of a 2.36-12. That there has to be a 2.36 all have, however old they are.
func ties(asked Relation, p *Package) bool {
	if asked.Operator != AtLeast && asked.Operator != Later {
		return exactly(asked, p)
	}
	i, j := strings.LastIndexByte(asked.Version, '-'), strings.LastIndexByte(p.Version, '-')
	return i >= 0 && j >= 0 && asked.Version[:i] == p.Version[:j]
}

// fromBase gives the package of a base that meets a requirement, or nil.
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
