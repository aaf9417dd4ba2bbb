package packaging

import (
	"cmp"
	"slices"
	"strings"
)

// Compare orders two versions of a family: negative where a is the earlier one.
type Compare func(a, b string) int

// Family is what distributions that share a format of packages agree on.
type Family struct {
	Compare Compare
	// Meets tells whether what a package provides, of the same name, answers what
	// is asked for. Its own name it provides in exactly its version. Without it a
	// name provided without a version meets no question for one.
	Meets func(provided, asked Relation) bool
	// Order sorts packages of which any would do, the one wanted most first.
	// Without it that is what was named first, and provides it first.
	Order func(all []*Package)
	// Fewest takes back, at the end, what was chosen to meet a requirement that
	// another package meets which is there anyway.
	Fewest bool
	// InTurn goes through what is needed one by one, as it is named, as apt does;
	// of packages that provide a name the earlier in the list is wanted more.
	// Without it what can be in one way only is settled first, and the shortest
	// name is wanted most.
	InTurn bool
}

// Universe is all packages that there are for one distribution, release and
// architecture.
type Universe struct {
	compare  Compare
	meets    func(provided, asked Relation) bool
	order    func([]*Package)
	fewest   bool
	inTurn   bool
	packages []*Package
	provide  map[string][]provider // by name provided, the package's own included
}

// provider is a package under a name that it has or provides. There are some
// hundred thousand of a distribution's: it is no larger than it has to be.
type provider struct {
	*Package
	at int // which of its Provides; byItself: its own name
}

const byItself = -1

// own tells whether it is the package's own name.
func (p provider) own() bool { return p.at == byItself }

// as gives what the package answers with under this name.
func (p provider) as() Relation {
	if p.own() {
		return Relation{Name: p.Name, Operator: Exactly, Version: p.Version}
	}
	return p.Provides[p.at]
}

// NewUniverse gathers packages. Of equal names the earlier in the list is wanted
// more where versions do not decide: who reads repositories puts those of a
// higher priority first. Candidates, where only one version of a name may be
// chosen, are the caller's choice too: what is not in the list does not exist.
func NewUniverse(compare Compare, packages []*Package) *Universe {
	return Family{Compare: compare}.Universe(packages)
}

// Universe gathers packages of a family, as NewUniverse does.
func (f Family) Universe(packages []*Package) *Universe {
	u := &Universe{compare: f.Compare, meets: f.Meets, order: f.Order, fewest: f.Fewest, inTurn: f.InTurn, packages: packages, provide: map[string][]provider{}}
	if u.meets == nil {
		u.meets = u.admits
	}
	for _, p := range packages {
		u.provide[p.Name] = append(u.provide[p.Name], provider{p, byItself})
		for i, x := range p.Provides {
			if x.Name == p.Name && x.Operator == Exactly && x.Version == p.Version {
				continue // rpm says so of every package
			}
			u.provide[x.Name] = append(u.provide[x.Name], provider{p, i})
		}
	}
	for _, all := range u.provide {
		slices.SortStableFunc(all, u.prefer)
	}
	return u
}

// prefer puts packages before those that only provide the name, later versions
// before earlier ones, and what every installation has before what it has not.
func (u *Universe) prefer(a, b provider) int {
	if a.own() != b.own() {
		return order(b.own(), a.own())
	}
	if a.Base != b.Base {
		return order(b.Base, a.Base)
	}
	if a.Name == b.Name {
		return u.compare(b.Version, a.Version)
	}
	if a.own() || u.inTurn {
		return 0
	}
	return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), strings.Compare(a.Name, b.Name))
}

// order puts true after false.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// Find gives the packages that meet r, the one wanted most first, each once.
func (u *Universe) Find(r Relation) []*Package {
	var out []*Package
	for _, p := range u.provide[r.Name] {
		if (p.own() || !r.Own) && u.meets(p.as(), r) && !slices.Contains(out, p.Package) && u.narrowed(r, p.Package) {
			out = append(out, p.Package)
		}
	}
	return out
}

// admits is Meets as Debian means it.
func (u *Universe) admits(provided, asked Relation) bool {
	if asked.Operator == AnyVersion {
		return true
	}
	return provided.Operator == Exactly && asked.Operator.holds(u.compare(provided.Version, asked.Version))
}

// holds tells whether a comparison's result is what the operator asks for.
func (o Operator) holds(c int) bool {
	switch o {
	case Earlier:
		return c < 0
	case AtMost:
		return c <= 0
	case Exactly:
		return c == 0
	case AtLeast:
		return c >= 0
	case Later:
		return c > 0
	}
	return true
}

// narrowed tells whether p meets r's With and Without.
func (u *Universe) narrowed(r Relation, p *Package) bool {
	for _, w := range r.With {
		if !slices.Contains(u.Find(w), p) {
			return false
		}
	}
	for _, w := range r.Without {
		if slices.Contains(u.Find(w), p) {
			return false
		}
	}
	return true
}

// Base gives the packages that every installation has.
func (u *Universe) Base() []*Package {
	var out []*Package
	for _, p := range u.packages {
		if p.Base {
			out = append(out, p)
		}
	}
	return out
}
