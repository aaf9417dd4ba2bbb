package packaging

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Unsolvable says why a request cannot be met.
type Unsolvable struct {
	// Chain has a line for each thing that together cannot be: who is wanted, who
	// needs whom, and where that ends.
	Chain []string
}

func (e *Unsolvable) Error() string {
	return "these packages cannot be installed together: " + strings.Join(e.Chain, "; ")
}

// UnknownError names a package that no repository has.
type UnknownError struct {
	Requirement Requirement
	Near        []string // names that are much like it
}

func (e *UnknownError) Error() string {
	s := "no repository has a package " + e.Requirement.String()
	if len(e.Near) > 0 {
		s += "; there is " + strings.Join(e.Near, ", ")
	}
	return s
}

// unknown gives an error for every wanted name that does not exist, all joined.
func (u *Universe) unknown(r Request) error {
	var errs []error
	for _, want := range r.Want {
		found := slices.ContainsFunc(want.Any, func(r Relation) bool { return len(u.Find(r)) > 0 })
		if !found {
			errs = append(errs, &UnknownError{Requirement: want, Near: u.near(want)})
		}
	}
	return errors.Join(errs...)
}

// near gives the versions that there are of the names, or else names like them.
func (u *Universe) near(want Requirement) []string {
	var out []string
	for _, r := range want.Any {
		for _, p := range u.provide[r.Name] {
			out = append(out, p.String())
		}
	}
	if len(out) > 0 {
		return out[:min(3, len(out))]
	}
	for _, r := range want.Any {
		for name := range u.provide {
			if d := len(name) - len(r.Name); d >= -2 && d <= 2 && levenshtein.ComputeDistance(name, r.Name) <= 2 {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out[:min(3, len(out))]
}

// What a clause says.
type causeKind int

const (
	needs causeKind = iota
	conflicts
	obsoletes
	sameName
	isInstalled
	follows // from others
)

// cause is why a clause stands.
type cause struct {
	kind        causeKind
	subject     *Package // nil: who asks for packages
	object      *Package
	requirement Requirement
	relation    Relation
}

// line words it.
func (c cause) line(u *Universe) string {
	switch c.kind {
	case needs:
		who := "wanted is "
		if c.subject != nil {
			who = c.subject.String() + " needs "
		}
		var found []string
		for _, r := range c.requirement.Any {
			for _, p := range u.Find(r) {
				found = append(found, p.String())
			}
		}
		switch {
		case len(c.requirement.Any) == 0:
			return who + c.requirement.String()
		case len(found) == 0:
			return who + c.requirement.String() + ", which no package is" + u.instead(c.requirement)
		case len(found) == 1 && c.subject != nil:
			return who + c.requirement.String() + ", which only " + found[0] + " is"
		}
		return who + c.requirement.String()
	case conflicts:
		return fmt.Sprintf("%s may not stand beside %s: it conflicts with %s", c.subject, c.object, c.relation)
	case obsoletes:
		return fmt.Sprintf("%s takes the place of %s", c.subject, c.object)
	case sameName:
		return fmt.Sprintf("only one of %s and %s can be there", c.object, c.subject)
	case isInstalled:
		return c.subject.String() + " is in every installation"
	case follows:
	}
	return ""
}

// instead says which versions there are of what is not there.
func (u *Universe) instead(q Requirement) string {
	if near := u.near(q); len(near) > 0 && slices.ContainsFunc(q.Any, func(r Relation) bool { return len(u.provide[r.Name]) > 0 }) {
		return " (there is " + strings.Join(near, ", ") + ")"
	}
	return ""
}

// unsolvable words why a clause cannot hold before any decision: everything that
// it follows from, from what is wanted on.
func (s *search) unsolvable(broken *clause) error {
	all := map[*clause]bool{}
	var gather func(c *clause)
	gather = func(c *clause) {
		if all[c] {
			return
		}
		all[c] = true
		for _, f := range c.from {
			gather(f)
		}
		for _, l := range c.literals {
			if r := s.reason[l.variable()]; s.is(l) == -1 && s.level[l.variable()] == 0 && r != nil {
				gather(r)
			}
		}
	}
	gather(broken)
	e := &Unsolvable{}
	told := map[string]bool{}
	tell := func(c *clause) {
		if text := c.why.line(s.u); text != "" && !told[text] {
			told[text] = true
			e.Chain = append(e.Chain, text)
		}
	}
	// From what is wanted along the needs, then what may not be.
	seen := map[*Package]bool{}
	var along func(c *clause)
	along = func(c *clause) {
		tell(c)
		for _, l := range c.choices {
			p := s.packages[l.variable()]
			if seen[p] {
				continue
			}
			seen[p] = true
			for _, q := range s.needs[l.variable()] {
				if all[q] {
					along(q)
				}
			}
		}
	}
	for _, c := range s.roots {
		if all[c] && c.why.kind == needs {
			along(c)
		}
	}
	var rest []*clause
	for c := range all {
		rest = append(rest, c)
	}
	slices.SortFunc(rest, func(a, b *clause) int {
		if a.why.kind != b.why.kind {
			return int(a.why.kind) - int(b.why.kind)
		}
		return strings.Compare(a.why.line(s.u), b.why.line(s.u))
	})
	for _, c := range rest {
		tell(c)
	}
	return e
}
