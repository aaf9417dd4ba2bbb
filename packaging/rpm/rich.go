package rpm

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mensylisir/kubexm/packaging"
)

// How deep rich dependencies nest and how long they get before they are no
// longer taken for one that a person or a program wrote in earnest.
const (
	maxRichDepth   = 32
	maxRichLength  = 64 << 10
	maxRichClauses = 512
)

var errTooComplex = errors.New("the dependency is too complex")

// expression is a rich dependency: a name, or an operator over others.
type expression struct {
	op   string // "", "and", "or", "if", "unless", "with", "without"
	name packaging.Relation
	of   []*expression // of if and unless: what, condition, and what else if there is an else
}

// parseRich reads "(a >= 1 and (b or c))".
func parseRich(s string) (*expression, error) {
	if len(s) > maxRichLength {
		return nil, errTooComplex
	}
	p := &richParser{rest: s}
	e, err := p.group(0)
	if err == nil && strings.TrimSpace(p.rest) != "" {
		err = fmt.Errorf("%q after its end", p.rest)
	}
	if err != nil {
		return nil, fmt.Errorf("rich dependency %q: %w", s, err)
	}
	return e, nil
}

type richParser struct{ rest string }

func (p *richParser) skip() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

// word takes what stands up to a blank, or to a bracket that it did not open:
// names have brackets of their own, "libc.so.6(GLIBC_2.4)(64bit)".
func (p *richParser) word() string {
	p.skip()
	depth, end := 0, len(p.rest)
scan:
	for i := range len(p.rest) {
		switch p.rest[i] {
		case ' ', '\t', '\r', '\n', ',':
			end = i
			break scan
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				end = i
				break scan
			}
		}
	}
	w := p.rest[:end]
	p.rest = p.rest[end:]
	return w
}

// operand takes a group, or a name with or without a version.
func (p *richParser) operand(depth int) (*expression, error) {
	p.skip()
	if strings.HasPrefix(p.rest, "(") {
		return p.group(depth)
	}
	e := &expression{name: packaging.Relation{Name: p.word()}}
	if e.name.Name == "" {
		return nil, errors.New("a name is missing")
	}
	p.skip()
	if p.rest != "" && strings.ContainsRune("<>=", rune(p.rest[0])) {
		op := p.rest[:len(p.rest)-len(strings.TrimLeft(p.rest, "<>="))]
		p.rest = p.rest[len(op):]
		e.name.Operator = written[op]
		if e.name.Operator == packaging.AnyVersion {
			return nil, fmt.Errorf("there is no operator %q", op)
		}
		if e.name.Version = p.word(); e.name.Version == "" {
			return nil, fmt.Errorf("%s %s: a version is missing", e.name.Name, op)
		}
	}
	return e, nil
}

// written has the operators as spec files and rich dependencies write them.
var written = map[string]packaging.Operator{
	"<": packaging.Earlier, "<=": packaging.AtMost, "=<": packaging.AtMost, "=": packaging.Exactly, "==": packaging.Exactly,
	">=": packaging.AtLeast, "=>": packaging.AtLeast, ">": packaging.Later,
}

// group takes "(a op b op c)".
func (p *richParser) group(depth int) (*expression, error) {
	if depth++; depth > maxRichDepth {
		return nil, errTooComplex
	}
	p.skip()
	if !strings.HasPrefix(p.rest, "(") {
		return nil, errors.New("it begins with no bracket")
	}
	p.rest = p.rest[1:]
	first, err := p.operand(depth)
	if err != nil {
		return nil, err
	}
	all := &expression{of: []*expression{first}}
	for {
		p.skip()
		if strings.HasPrefix(p.rest, ")") {
			p.rest = p.rest[1:]
			if all.op == "" {
				return first, nil
			}
			return all, nil
		}
		if err := all.take(p.word()); err != nil {
			return nil, err
		}
		next, err := p.operand(depth)
		if err != nil {
			return nil, err
		}
		all.of = append(all.of, next)
	}
}

// take looks whether an operator may come next.
func (e *expression) take(op string) error {
	switch op {
	case "and", "or", "with":
		if e.op == "" || e.op == op {
			e.op = op
			return nil
		}
	case "if", "unless", "without":
		if e.op == "" {
			e.op = op
			return nil
		}
	case "else":
		if (e.op == "if" || e.op == "unless") && len(e.of) == 2 {
			return nil
		}
	case "":
		return errors.New("a bracket is missing at its end")
	default:
		return fmt.Errorf("there is no operator %q", op)
	}
	return fmt.Errorf("%q cannot come after %q", op, e.op)
}
