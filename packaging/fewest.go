package packaging

import "slices"

// fewest takes back choices that turned out needless: where of the packages that
// meet a requirement two were chosen, the second because something else needs it,
// the first goes, with all that only it brought, if everything wanted still stands.
// What stands without one package has no conflict that was not there before.
func (s *search) fewest() {
	for {
		v := s.needless()
		if v == 0 {
			return
		}
	}
}

// needless takes one choice back, and tells which; 0 where all are needed.
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

// reached gives what is wanted and what that needs, and takes back whatever else was
// chosen on the way, on which a condition may hang.
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

// without gives the packages that cannot stay when v goes; nil where something
// wanted, or something that is there already, is among them.
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
