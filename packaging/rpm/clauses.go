package rpm

import (
	"fmt"
	"slices"

	"github.com/mensylisir/kubexm/packaging"
)

// clauses converts a rich dependency to a list of requirements that must all be met. With
// negate they state its opposite, as required for a conflict.
//
//	a if b         b is not installed, or a is
//	a if b else c  … and b is installed, or c is
//	a unless b     a is installed, and b is not
func (e *expression) clauses(negate bool) ([]packaging.Requirement, error) {
	switch e.op {
	case "", "with", "without":
		names, err := e.names()
		if err != nil {
			return nil, err
		}
		if !negate {
			return []packaging.Requirement{{Any: names}}, nil
		}
		var out []packaging.Requirement
		for _, n := range names {
			out = append(out, packaging.Requirement{If: []packaging.Relation{n}})
		}
		return out, nil
	case "and", "or":
		return join(e.op == "and" != negate, e.of, negate)
	case "if", "unless":
		return e.condition(negate)
	}
	return nil, fmt.Errorf("unknown operator %q", e.op)
}

// condition converts if and unless. "a if b else c" is "(a or not b) and (c or b)"; "a
// unless b else c" is "(a and not b) or (c and b)".
func (e *expression) condition(negate bool) ([]packaging.Requirement, error) {
	if len(e.of) < 2 {
		return nil, fmt.Errorf("%q without a condition", e.op)
	}
	one, two := side{e.of[0], negate}, side{e.of[1], !negate}
	all := e.op == "unless" != negate // both must be met
	out, err := both(all, one, two)
	if err != nil || len(e.of) == 2 {
		return out, err
	}
	other, err := both(all, side{e.of[2], negate}, side{e.of[1], negate})
	if err != nil {
		return nil, err
	}
	if !all {
		return append(out, other...), nil
	}
	return product(out, other)
}

// side is an expression, or its negation.
type side struct {
	*expression
	negate bool
}

func both(all bool, sides ...side) ([]packaging.Requirement, error) {
	var out []packaging.Requirement
	for i, s := range sides {
		c, err := s.clauses(s.negate)
		if err != nil {
			return nil, err
		}
		if i == 0 || all {
			out = append(out, c...)
		} else if out, err = product(out, c); err != nil {
			return nil, err
		}
		if len(out) > maxRichClauses {
			return nil, errTooComplex
		}
	}
	return out, nil
}

// join returns the clauses of a conjunction or disjunction.
func join(all bool, of []*expression, negate bool) ([]packaging.Requirement, error) {
	sides := make([]side, len(of))
	for i, e := range of {
		sides[i] = side{e, negate}
	}
	return both(all, sides...)
}

// product returns the clauses of the disjunction of two lists.
func product(a, b []packaging.Requirement) ([]packaging.Requirement, error) {
	if len(a)*len(b) > maxRichClauses {
		return nil, errTooComplex
	}
	var out []packaging.Requirement
	for _, x := range a {
		for _, y := range b {
			q := packaging.Requirement{Any: slices.Concat(x.Any, y.Any), If: slices.Concat(x.If, y.If)}
			if !always(q) {
				out = append(out, q)
			}
		}
	}
	return out, nil
}

// always reports whether a requirement is a tautology: "b if b".
func always(q packaging.Requirement) bool {
	return slices.ContainsFunc(q.If, func(c packaging.Relation) bool {
		return slices.ContainsFunc(q.Any, func(a packaging.Relation) bool { return a.String() == c.String() })
	})
}

// names returns the relations for expressions with "with" and "without".
func (e *expression) names() ([]packaging.Relation, error) {
	switch e.op {
	case "":
		return []packaging.Relation{e.name}, nil
	case "or":
		var out []packaging.Relation
		for _, x := range e.of {
			n, err := x.names()
			if err != nil {
				return nil, err
			}
			out = append(out, n...)
		}
		return out, nil
	case "with", "without":
	default:
		return nil, fmt.Errorf("%q cannot be combined with with and without, which are about one package", e.op)
	}
	out, err := e.of[0].names()
	if err != nil {
		return nil, err
	}
	for _, x := range e.of[1:] {
		n, err := x.names()
		if err != nil {
			return nil, err
		}
		if e.op == "without" {
			for i := range out {
				out[i].Without = slices.Concat(out[i].Without, n)
			}
			continue
		}
		if len(out)*len(n) > maxRichClauses {
			return nil, errTooComplex
		}
		var narrowed []packaging.Relation
		for _, a := range out {
			for _, b := range n {
				c := a
				c.With = slices.Concat(a.With, []packaging.Relation{b})
				narrowed = append(narrowed, c)
			}
		}
		out = narrowed
	}
	return out, nil
}
