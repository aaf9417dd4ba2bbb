package packaging

import "slices"

// Carry tells what of a base has to be carried beside a solution, and what of it may
// stay left out, both sorted by name. A package that asks for another in just one
// version does not go with a host of another patch level: so what is asked for in
// that way comes along, and what of the base asks in that way for something that
// comes along, and so on. Left is what the rest needs, in the version that a host has.
func (u *Universe) Carry(s *Solution, base []*Package) (along, left []*Package) {
	inBase := map[*Package]bool{}
	for _, p := range base {
		inBase[p] = true
	}
	bound := map[*Package][]*Package{} // → who of the base wants it in just one version
	for _, p := range base {
		for _, x := range u.exactly(p, inBase) {
			bound[x] = append(bound[x], p)
		}
	}
	seen := map[*Package]bool{}
	for open := slices.Clone(s.Add); len(open) > 0; open = open[1:] {
		for _, x := range slices.Concat(u.exactly(open[0], inBase), bound[open[0]]) {
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

// exactly gives what of a base a package needs in just one version.
func (u *Universe) exactly(p *Package, inBase map[*Package]bool) []*Package {
	var out []*Package
	for _, q := range p.Requires {
		var only []*Package
		loose := false // any version would do
		for _, r := range q.Any {
			for _, x := range u.Find(r) {
				if inBase[x] && x != p {
					only = append(only, x)
					loose = loose || r.Operator != Exactly
				}
			}
		}
		if !loose {
			out = append(out, only...)
		}
	}
	return out
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
