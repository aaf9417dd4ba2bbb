package packaging

import "slices"

// fewest removes packages that turned out to be unnecessary. If two packages that meet a
// requirement were chosen, the second because something else requires it, the first is
// removed with everything that only it requires, as long as the request is still met.
// Removing packages never adds a conflict.
func (s *search) fewest() {
	for {
		v := s.needless()
		if v == 0 {
			return
		}
	}
}

// needless removes one unnecessary package, and returns its variable; 0 if there is none.
func (s *search) needless() int {
	chosen := s.reached()
	clauses := slices.Clone(s.roots)
	for _, v := range chosen {
		clauses = append(clauses, s.needs[v]...)
	}
	for _, c := range clauses {
		if c.why.kind != needs {
			continue
		}
		first, n := 0, 0
		for _, l := range c.choices {
			if s.is(l) == 1 {
				if n++; n == 1 {
					first = l.variable()
				}
			}
		}
		if n < 2 || s.installed[s.packages[first]] {
			continue
		}
		if gone := s.without(first, chosen); gone != nil {
			for v := range gone {
				s.value[v] = -1
			}
			return first
		}
	}
	return 0
}

// reached returns the packages that the request depends on. It removes all other chosen
// packages, since conditional requirements may depend on them.
func (s *search) reached() []int {
	for {
		in := map[int]bool{}
		var chosen []int
		_ = s.walk(func(v int) {
			if !in[v] {
				in[v] = true
				chosen = append(chosen, v)
			}
		})
		changed := false
		for v := 1; v < len(s.packages); v++ {
			if s.value[v] == 1 && !in[v] && !s.installed[s.packages[v]] {
				s.value[v], changed = -1, true
			}
		}
		if !changed {
			return chosen
		}
	}
}

// without returns the packages that must be removed together with v; nil if a requested
// or installed package is among them.
func (s *search) without(v int, chosen []int) map[int]bool {
	gone := map[int]bool{v: true}
	holds := func(c *clause) bool {
		for _, l := range c.literals {
			there := s.value[l.variable()] == 1 && !gone[l.variable()]
			if there == (l&1 == 0) {
				return true
			}
		}
		return false
	}
	for again := true; again; {
		again = false
		for _, x := range chosen {
			if gone[x] {
				continue
			}
			for _, c := range s.needs[x] {
				if !holds(c) {
					gone[x], again = true, true
					break
				}
			}
		}
	}
	for _, c := range s.roots {
		if !holds(c) {
			return nil
		}
	}
	return gone
}
