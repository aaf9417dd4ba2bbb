package packaging

import (
	"context"
	"slices"
)

// run searches for an assignment that satisfies every clause.
func (s *search) run(ctx context.Context) error {
	clauses := slices.Clone(s.roots)
	for _, n := range s.needs {
		clauses = append(clauses, n...)
	}
	for _, c := range clauses {
		if broken := s.watch(c); broken != nil {
			return s.unsolvable(broken)
		}
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if broken := s.follow(); broken != nil {
			if len(s.limits) == 0 {
				return s.unsolvable(broken)
			}
			learnt, back := s.learn(broken)
			s.undo(back)
			if broken := s.watch(learnt); broken != nil {
				return s.unsolvable(broken)
			}
			continue
		}
		next := s.wanted()
		if next == 0 {
			next = s.walk(func(int) {})
		}
		if next == 0 {
			return nil
		}
		s.limits = append(s.limits, len(s.trail))
		s.settle(next, nil)
	}
}

// wanted returns the package to choose for a request that is not met yet, or 0. Requests
// come before dependencies: a request means the latest version of a package, and not a
// version that satisfies some dependency.
func (s *search) wanted() literal {
	for _, c := range s.roots {
		if c.why.kind != needs || slices.ContainsFunc(c.literals, func(l literal) bool { return s.is(l) == 1 || l&1 == 1 && s.is(l) == 0 }) {
			continue
		}
		for _, l := range c.choices {
			if s.is(l) == 0 {
				return l
			}
		}
	}
	return 0
}

// walk visits the chosen packages that the request depends on, depth first, and calls
// visit for each. It returns the package to choose next, or 0 if the request is met.
func (s *search) walk(visit func(v int)) literal {
	if s.u.inTurn {
		return s.walkInTurn(visit)
	}
	seen := make([]bool, len(s.packages))
	var follow func(c *clause) literal
	follow = func(c *clause) literal {
		if c.choices == nil && len(c.literals) != 1 {
			return 0 // a conflict, or a clause without alternatives
		}
		if slices.ContainsFunc(c.literals, func(l literal) bool { return l&1 == 1 && s.is(l) >= 0 }) {
			return 0 // its condition is not met, or not yet
		}
		var open literal
		for _, l := range append(c.choices[:len(c.choices):len(c.choices)], c.literals...) {
			switch {
			case s.is(l) == 1:
				v := l.variable()
				visit(v)
				if seen[v] {
					return 0
				}
				seen[v] = true
				for _, q := range s.needs[v] {
					if next := follow(q); next != 0 {
						return next
					}
				}
				return 0
			case s.is(l) == 0 && open == 0:
				open = l
			}
		}
		return open
	}
	for _, c := range s.roots {
		if next := follow(c); next != 0 {
			return next
		}
	}
	return 0
}

// is returns a literal's value: 1 true, -1 false, 0 unassigned.
func (s *search) is(l literal) int8 {
	if l&1 == 1 {
		return -s.value[l.variable()]
	}
	return s.value[l.variable()]
}

// settle assigns l the value true; why is the clause that implied it, nil for a decision.
func (s *search) settle(l literal, why *clause) {
	v := l.variable()
	s.value[v] = 1 - 2*int8(l&1)
	s.level[v], s.reason[v] = len(s.limits), why
	s.trail = append(s.trail, l)
}

// undo backtracks to decision level n.
func (s *search) undo(n int) {
	for _, l := range s.trail[s.limits[n]:] {
		s.value[l.variable()] = 0
	}
	s.trail = s.trail[:s.limits[n]]
	s.limits, s.done = s.limits[:n], len(s.trail)
}

// watch adds a clause to the watch lists; it returns the clause if it is violated.
func (s *search) watch(c *clause) *clause {
	// Literals that are not false come first, then the most recently assigned.
	slices.SortStableFunc(c.literals, func(a, b literal) int {
		rank := func(l literal) int {
			if s.is(l) >= 0 {
				return -1 << 30
			}
			return -s.level[l.variable()]
		}
		return rank(a) - rank(b)
	})
	for _, l := range c.literals[:min(2, len(c.literals))] {
		s.watches[l] = append(s.watches[l], c)
	}
	switch {
	case len(c.literals) == 0 || s.is(c.literals[0]) == -1:
		return c
	case s.is(c.literals[0]) == 0 && (len(c.literals) == 1 || s.is(c.literals[1]) == -1):
		s.settle(c.literals[0], c)
	}
	return nil
}

// follow does unit propagation; it returns a violated clause, or nil.
func (s *search) follow() *clause {
	for ; s.done < len(s.trail); s.done++ {
		gone := s.trail[s.done].not()
		watching := s.watches[gone]
		kept := watching[:0]
		for i, c := range watching {
			if !s.moved(c, gone) {
				kept = append(kept, c)
				first := c.literals[0]
				switch s.is(first) {
				case -1:
					s.watches[gone] = append(kept, watching[i+1:]...)
					return c
				case 0:
					s.settle(first, c)
				}
			}
		}
		s.watches[gone] = kept
	}
	return nil
}

// moved replaces the false watched literal of c by another one, if possible. The false
// literal is in second place afterwards.
func (s *search) moved(c *clause, gone literal) bool {
	if len(c.literals) == 1 {
		return false
	}
	if c.literals[0] == gone {
		c.literals[0], c.literals[1] = c.literals[1], c.literals[0]
	}
	if s.is(c.literals[0]) == 1 {
		return false
	}
	for i, l := range c.literals[2:] {
		if s.is(l) >= 0 {
			c.literals[1], c.literals[i+2] = l, gone
			s.watches[l] = append(s.watches[l], c)
			return true
		}
	}
	return false
}

// learn analyzes a conflict. It returns the clause learned from it, up to the first
// unique implication point, and the decision level to backtrack to.
func (s *search) learn(broken *clause) (learnt *clause, back int) {
	learnt = &clause{literals: []literal{0}, why: cause{kind: follows}}
	seen := make([]bool, len(s.value))
	open, at := 0, len(s.trail)-1
	for c := broken; ; {
		learnt.from = append(learnt.from, c)
		for _, l := range c.literals {
			v := l.variable()
			if seen[v] || s.is(l) == 1 {
				continue
			}
			seen[v] = true
			switch s.level[v] {
			case 0:
				learnt.from = append(learnt.from, s.roadTo(v)...)
			case len(s.limits):
				open++
			default:
				learnt.literals = append(learnt.literals, l)
				back = max(back, s.level[v])
			}
		}
		for !seen[s.trail[at].variable()] || s.level[s.trail[at].variable()] != len(s.limits) {
			at--
		}
		l := s.trail[at]
		at--
		open--
		if open == 0 {
			learnt.literals[0] = l.not()
			return learnt, back
		}
		c = s.reason[l.variable()]
	}
}

// roadTo returns the clauses that imply the value of v without any decision.
func (s *search) roadTo(v int) []*clause {
	if s.reason[v] == nil {
		return nil
	}
	return []*clause{s.reason[v]}
}
