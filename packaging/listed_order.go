package packaging

import "slices"

// walkInTurn is walk in apt's order. All requested packages are chosen first; then the
// dependencies of the first one, in order and depth first, and so on. A requirement is
// met by a package that was visited before. Otherwise the first possible alternative is
// chosen, even if a later one will be chosen anyway. A package that is requested by name
// is preferred to others that provide the name.
func (s *search) walkInTurn(visit func(v int)) literal {
	seen := make([]bool, len(s.packages))
	var roots []int
	for _, c := range s.roots {
		v, open := s.take(c, nil)
		if open != 0 {
			return open
		}
		if v != 0 && !seen[v] {
			seen[v] = true
			roots = append(roots, v)
		}
	}
	var follow func(v int) literal
	follow = func(v int) literal {
		visit(v)
		for _, c := range s.needs[v] {
			x, open := s.take(c, seen)
			if open != 0 {
				return open
			}
			if x != 0 {
				seen[x] = true
				if open := follow(x); open != 0 {
					return open
				}
			}
		}
		return 0
	}
	for _, v := range roots {
		if open := follow(v); open != 0 {
			return open
		}
	}
	return 0
}

// take returns the package that meets a clause, or the literal to decide next. Both are 0
// if nothing has to be done, for example because an alternative was visited before.
func (s *search) take(c *clause, seen []bool) (v int, open literal) {
	if c.choices == nil && len(c.literals) != 1 {
		return 0, 0 // a conflict, or a clause without alternatives
	}
	for _, l := range c.literals {
		if l&1 == 1 && s.is(l) >= 0 {
			return 0, 0 // its condition is not met, or not yet
		}
	}
	all := c.choices
	if all == nil {
		all = c.literals
	}
	if slices.ContainsFunc(all, func(l literal) bool { return seen != nil && s.is(l) == 1 && seen[l.variable()] }) {
		return 0, 0
	}
	for _, l := range all {
		switch s.is(l) {
		case 1:
			return l.variable(), 0
		case 0:
			return 0, l
		}
	}
	return 0, 0
}

// byName sorts packages with a requested name before those that only provide it.
func (s *search) byName(q Requirement, found []*Package) {
	has := func(p *Package) bool {
		return slices.ContainsFunc(q.Any, func(r Relation) bool { return r.Name == p.Name })
	}
	slices.SortStableFunc(found, func(a, b *Package) int { return order(has(b), has(a)) })
}
