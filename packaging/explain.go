package packaging

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Unsolvable is the error for a request without a solution.
type Unsolvable struct {
	// Chain explains the failure, one line for each fact: requested packages,
	// dependencies, and the conflict or missing package.
	Chain []string
}

func (e *Unsolvable) Error() string {
	return "these packages cannot be installed together: " + strings.Join(e.Chain, "; ")
}

// UnknownError is the error for a package that no repository has.
type UnknownError struct {
	Requirement Requirement
	Near        []string // available versions, or similar names
}

func (e *UnknownError) Error() string {
	s := "no repository has the package " + e.Requirement.String()
	if len(e.Near) > 0 {
		s += "; available: " + strings.Join(e.Near, ", ")
	}
	return s
}

// unknown returns the joined errors for all requested names that do not exist.
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

// near returns the available versions of the names, or else similar names.
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

// causeKind is the kind of fact that a clause states.
type causeKind int

const (
	needs causeKind = iota
	conflicts
	obsoletes
	sameName
	isInstalled
	follows // from others
)

// cause is the reason for a clause.
type cause struct {
	kind        causeKind
	subject     *Package // nil for the request itself
	object      *Package
	requirement Requirement
	relation    Relation
}

// line formats the cause as one line of Unsolvable.Chain.
func (c cause) line(u *Universe) string {
	switch c.kind {
	case needs:
		who := "requested: "
		if c.subject != nil {
			who = c.subject.String() + " requires "
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
			return who + c.requirement.String() + ", which no package provides" + u.instead(c.requirement)
		case len(found) == 1 && c.subject != nil:
			return who + c.requirement.String() + ", which only " + found[0] + " provides"
		}
		return who + c.requirement.String()
	case conflicts:
		return fmt.Sprintf("%s cannot be installed with %s: it conflicts with %s", c.subject, c.object, c.relation)
	case obsoletes:
		return fmt.Sprintf("%s replaces %s", c.subject, c.object)
	case sameName:
		return fmt.Sprintf("only one of %s and %s can be installed", c.object, c.subject)
	case isInstalled:
		return c.subject.String() + " is part of every installation"
	case follows:
	}
	return ""
}

// instead lists the available versions of a package that is not available as required.
func (u *Universe) instead(q Requirement) string {
	if near := u.near(q); len(near) > 0 && slices.ContainsFunc(q.Any, func(r Relation) bool { return len(u.provide[r.Name]) > 0 }) {
		return " (available: " + strings.Join(near, ", ") + ")"
	}
	return ""
}

// unsolvable returns the error for a clause that is violated without any decision. It
// lists every fact that this follows from, beginning with the request.
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
	listed := map[string]bool{}
	list := func(c *clause) {
		if text := c.why.line(s.u); text != "" && !listed[text] {
			listed[text] = true
			e.Chain = append(e.Chain, text)
		}
	}
	// First the requests and their dependencies, then the conflicts.
	seen := map[*Package]bool{}
	var along func(c *clause)
	along = func(c *clause) {
		list(c)
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
		list(c)
	}
	return e
}
