package packaging

import (
	"cmp"
	"slices"
	"strings"
)

// Compare compares two versions of a family: negative if a is earlier than b.
type Compare func(a, b string) int

// Family contains the rules of distributions with the same package format.
type Family struct {
	Compare Compare
	// Meets reports whether a provided relation meets a required one of the same name. A
	// package provides its own name in exactly its version. If Meets is nil, a name that
	// is provided without a version does not meet a requirement with a version.
	Meets func(provided, asked Relation) bool
	// Order sorts alternative packages by preference. If it is nil, the first listed and
	// the first provider are preferred.
	Order func(all []*Package)
	// DropRedundant removes, at the end, packages that were chosen for a requirement that
	// another chosen package meets too.
	DropRedundant bool
	// InListedOrder handles dependencies one by one in their listed order, like apt; of packages
	// that provide a name, earlier ones in the list are preferred. Otherwise requirements
	// with a single alternative come first, and the shortest name is preferred.
	InListedOrder bool
}

// Universe is the set of all packages for one distribution, release and architecture.
type Universe struct {
	compare  Compare
	meets    func(provided, asked Relation) bool
	order    func([]*Package)
	fewest   bool
	inTurn   bool
	packages []*Package
	provide  map[string][]provider // by name provided, the package's own included
}

// provider is a package under a name that it has or provides. It is small because a
// distribution has several hundred thousand of them.
type provider struct {
	*Package
	at int // index in its Provides; byItself for its own name
}

const byItself = -1

// own reports whether it is the package's own name.
func (p provider) own() bool { return p.at == byItself }

// as returns the relation that the package provides under this name.
func (p provider) as() Relation {
	if p.own() {
		return Relation{Name: p.Name, Operator: Exactly, Version: p.Version}
	}
	return p.Provides[p.at]
}

// NewUniverse returns the universe of packages. Of packages with the same name and
// version the earlier in the list is preferred, so callers put repositories of a higher
// priority first. If only one version of a name is a candidate, the caller must leave out
// the others.
func NewUniverse(compare Compare, packages []*Package) *Universe {
	return Family{Compare: compare}.Universe(packages)
}

// Universe returns the universe of a family's packages; see NewUniverse.
func (f Family) Universe(packages []*Package) *Universe {
	u := &Universe{compare: f.Compare, meets: f.Meets, order: f.Order, fewest: f.DropRedundant, inTurn: f.InListedOrder, packages: packages, provide: map[string][]provider{}}
	if u.meets == nil {
		u.meets = u.admits
	}
	for _, p := range packages {
		u.provide[p.Name] = append(u.provide[p.Name], provider{p, byItself})
		for i, x := range p.Provides {
			if x.Name == p.Name && x.Operator == Exactly && x.Version == p.Version {
				continue // every rpm package provides its own name and version
			}
			u.provide[x.Name] = append(u.provide[x.Name], provider{p, i})
		}
	}
	for _, all := range u.provide {
		slices.SortStableFunc(all, u.prefer)
	}
	return u
}

// prefer sorts packages before those that only provide the name, base packages before
// others, and later versions before earlier ones.
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

// order sorts false before true.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// Find returns the packages that meet r, without duplicates, in order of preference.
func (u *Universe) Find(r Relation) []*Package {
	var out []*Package
	for _, p := range u.provide[r.Name] {
		if (p.own() || !r.Own) && u.meets(p.as(), r) && !slices.Contains(out, p.Package) && u.narrowed(r, p.Package) {
			out = append(out, p.Package)
		}
	}
	return out
}

// admits is the Meets of Debian.
func (u *Universe) admits(provided, asked Relation) bool {
	if asked.Operator == AnyVersion {
		return true
	}
	return provided.Operator == Exactly && asked.Operator.holds(u.compare(provided.Version, asked.Version))
}

// holds reports whether the result of a comparison satisfies the operator.
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

// narrowed reports whether p meets r's With and Without.
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

// Base returns the packages that are marked as base packages.
func (u *Universe) Base() []*Package {
	var out []*Package
	for _, p := range u.packages {
		if p.Base {
			out = append(out, p)
		}
	}
	return out
}
