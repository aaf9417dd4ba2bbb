package packaging

import (
	"context"
	"slices"
	"strings"
)

// Request is a set of requested packages.
type Request struct {
	Want []Requirement // each must be met
	// Installed packages are assumed to be installed: a solution contains them but does
	// not add them. Usually Universe.BaseClosure.
	Installed []*Package
}

// Solution is a set of packages with all dependencies met and without conflicts.
type Solution struct {
	Add  []*Package // packages to install, sorted by name
	Held []*Package // installed packages that the added ones require, sorted by name
}

// Solve finds packages that meet a request. It chooses like apt: an installed package,
// else the first alternative, else the first package that provides it; it backtracks only
// if necessary. The solver is complete: if there is no solution the error is an
// *Unsolvable with the explanation. The result is deterministic.
func (u *Universe) Solve(ctx context.Context, r Request) (*Solution, error) {
	if err := u.unknown(r); err != nil {
		return nil, err
	}
	s := newSearch(u, r)
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	if u.fewest {
		s.fewest()
	}
	chosen, held := s.chosen()
	for _, list := range [][]*Package{chosen, held} {
		slices.SortFunc(list, byName)
	}
	return &Solution{Add: chosen, Held: held}, nil
}

// BaseClosure returns the packages that every installation has: those marked Base, and
// their dependencies.
func (u *Universe) BaseClosure(ctx context.Context) ([]*Package, error) {
	r := Request{}
	for _, p := range u.Base() {
		r.Want = append(r.Want, Requirement{Any: []Relation{{Name: p.Name, Operator: Exactly, Version: p.Version}}})
	}
	s, err := u.Solve(ctx, r)
	if err != nil {
		return nil, err
	}
	return s.Add, nil
}

func byName(a, b *Package) int { return strings.Compare(a.String(), b.String()) }

// search is the state of one Solve: a CDCL search for an assignment of the variables
// "this package is chosen".
type search struct {
	u         *Universe
	installed map[*Package]bool
	number    map[*Package]int // → its variable; from 1
	packages  []*Package       // by variable; 0 is unused
	roots     []*clause
	needs     [][]*clause // by variable: the package's dependencies, in order

	watches [][]*clause // by literal
	value   []int8      // by variable: 1 chosen, -1 not, 0 unassigned
	level   []int       // by variable: decision level of the assignment
	reason  []*clause   // by variable: clause that implied the value, nil for a decision
	trail   []literal   // assignments, in order
	limits  []int       // start of each decision level in trail
	done    int         // length of trail that was propagated
}

// literal is a variable, or with the lowest bit its negation.
type literal int

func yes(v int) literal         { return literal(v << 1) }
func no(v int) literal          { return literal(v<<1 | 1) }
func (l literal) not() literal  { return l ^ 1 }
func (l literal) variable() int { return int(l >> 1) }

// clause is a list of literals of which one must be true; the first two are watched.
type clause struct {
	literals []literal
	choices  []literal // for a requirement: packages that meet it, in order of preference
	why      cause     // for the explanation
	from     []*clause // for a learned clause: the clauses that it follows from
}

func newSearch(u *Universe, r Request) *search {
	s := &search{u: u, installed: map[*Package]bool{}, number: map[*Package]int{}, packages: []*Package{nil}, needs: [][]*clause{nil}}
	for _, p := range r.Installed {
		s.installed[p] = true
	}
	for _, p := range r.Installed {
		v := s.add(p)
		s.roots = append(s.roots, s.clause(nil, []literal{yes(v)}, cause{kind: isInstalled, subject: p}))
	}
	for _, want := range r.Want {
		s.roots = append(s.roots, s.require(nil, want)...)
	}
	for v := 1; v < len(s.packages); v++ { // grows as dependencies are added
		p := s.packages[v]
		for _, q := range p.Requires {
			s.needs[v] = append(s.needs[v], s.require(p, q)...)
		}
	}
	s.exclude()
	n := len(s.packages)
	s.value, s.level, s.reason, s.watches = make([]int8, n), make([]int, n), make([]*clause, n), make([][]*clause, 2*n)
	return s
}

// add returns a package's variable, which is created if necessary.
func (s *search) add(p *Package) int {
	v, ok := s.number[p]
	if !ok {
		v = len(s.packages)
		s.number[p] = v
		s.packages, s.needs = append(s.packages, p), append(s.needs, nil)
	}
	return v
}

func (s *search) clause(choices, literals []literal, why cause) *clause {
	return &clause{literals: literals, choices: choices, why: why}
}

// require returns the clauses of a dependency of p, or of a request if p is nil.
func (s *search) require(p *Package, q Requirement) []*clause {
	var there, found []*Package
	for _, r := range q.Any {
		for _, x := range s.u.Find(r) {
			if x == p || s.installed[x] {
				if len(q.If) == 0 && (x == p || s.installed[p]) {
					return nil // always met
				}
				there = append([]*Package{x}, there...)
				continue
			}
			if !slices.Contains(found, x) {
				found = append(found, x)
			}
		}
	}
	if s.u.order != nil {
		s.u.order(found)
	}
	found = append(there, found...)
	if p == nil && s.u.inTurn {
		s.byName(q, found)
	}
	if p != nil && slices.ContainsFunc(found, func(x *Package) bool { return s.installed[x] }) && len(q.If) == 0 {
		found = slices.DeleteFunc(found, func(x *Package) bool { return !s.installed[x] })[:1]
	}
	var choices []literal
	for _, x := range found {
		choices = append(choices, yes(s.add(x)))
	}
	why := cause{kind: needs, subject: p, requirement: q}
	var out []*clause
	for _, absent := range s.conditions(q.If) {
		literals := slices.Clone(choices)
		if p != nil {
			literals = append(literals, no(s.number[p]))
		}
		out = append(out, s.clause(choices, append(literals, absent...), why))
	}
	return out
}

// conditions returns, for each combination of packages that meets all relations, the
// literals of which one is true if that combination is not installed. An empty list has
// one combination.
func (s *search) conditions(all []Relation) [][]literal {
	ways := [][]literal{nil}
	for _, r := range all {
		var next [][]literal
		for _, x := range s.u.Find(r) {
			for _, w := range ways {
				next = append(next, append(slices.Clone(w), no(s.add(x))))
			}
		}
		ways = next
	}
	return ways
}

// exclude adds the clauses of conflicts.
func (s *search) exclude() {
	names := map[string][]int{}
	for v := 1; v < len(s.packages); v++ {
		p := s.packages[v]
		for _, other := range names[p.Name] {
			s.roots = append(s.roots, s.clause(nil, []literal{no(v), no(other)}, cause{kind: sameName, subject: p, object: s.packages[other]}))
		}
		names[p.Name] = append(names[p.Name], v)
		for _, r := range p.Conflicts {
			s.apart(v, s.u.Find(r), cause{kind: conflicts, subject: p, relation: r})
		}
		for _, r := range p.Obsoletes {
			s.apart(v, slices.DeleteFunc(s.u.Find(r), func(x *Package) bool { return x.Name != r.Name }), cause{kind: obsoletes, subject: p, relation: r})
		}
	}
}

func (s *search) apart(v int, others []*Package, why cause) {
	for _, x := range others {
		if other, ok := s.number[x]; ok && other != v && x.Name != s.packages[v].Name {
			why.object = x
			s.roots = append(s.roots, s.clause(nil, []literal{no(v), no(other)}, why))
		}
	}
}

// chosen returns the packages to add, and the installed packages that these require.
func (s *search) chosen() (add, held []*Package) {
	seen := map[int]bool{}
	_ = s.walk(func(v int) {
		p := s.packages[v]
		if seen[v] {
			return
		}
		seen[v] = true
		if !s.installed[p] {
			add = append(add, p)
		}
	})
	needed := map[*Package]bool{}
	for _, p := range add {
		for _, q := range s.needs[s.number[p]] {
			for _, l := range q.choices {
				if x := s.packages[l.variable()]; s.installed[x] && !needed[x] {
					needed[x] = true
					held = append(held, x)
				}
			}
		}
	}
	return add, held
}
