package packaging

import "slices"

// walkInTurn is walk as apt goes about it: what is wanted counts as there from
// the start; then comes what the first of it needs, in order and depth first, and
// so on. A requirement is met by what was come by so far. Otherwise the first of
// those that may be is taken, though a later one is certain to come. Who wants a
// package by its name gets it, whoever else provides the name.
func (s *search) walkInTurn(tell func(v int)) literal {
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
		tell(v)
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

// take gives the package that a clause leads to, or the literal to decide so that
// there is one. Both are 0 where nothing is to be done, as where one was seen.
func (s *search) take(c *clause, seen []bool) (v int, open literal) {
	if c.choices == nil && len(c.literals) != 1 {
		return 0, 0 // says what may not be, or has nothing to choose from
	}
	for _, l := range c.literals {
		if l&1 == 1 && s.is(l) >= 0 {
			return 0, 0 // it does not apply, or not so far
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

// byName puts the packages that have a wanted name before those that provide it.
func (s *search) byName(q Requirement, found []*Package) {
	has := func(p *Package) bool {
		return slices.ContainsFunc(q.Any, func(r Relation) bool { return r.Name == p.Name })
	}
	slices.SortStableFunc(found, func(a, b *Package) int { return order(has(b), has(a)) })
}
