package rpm

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mensylisir/kubexm/packaging"
)

// The maximum nesting and length of rich dependencies.
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
	of   []*expression // for if and unless: expression, condition, and the else expression if there is one
}

// parseRich parses "(a >= 1 and (b or c))".
func parseRich(s string) (*expression, error) {
	if len(s) > maxRichLength {
		return nil, errTooComplex
	}
	p := &richParser{rest: s}
	e, err := p.group(0)
	if err == nil && strings.TrimSpace(p.rest) != "" {
		err = fmt.Errorf("unexpected %q at the end", p.rest)
	}
	if err != nil {
		return nil, fmt.Errorf("rich dependency %q: %w", s, err)
	}
	return e, nil
}

type richParser struct{ rest string }

func (p *richParser) skip() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

// word reads up to a space or an unbalanced closing bracket, since names may contain
// brackets: "libc.so.6(GLIBC_2.4)(64bit)".
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

// operand parses a group, or a name with an optional version.
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
			return nil, fmt.Errorf("unknown operator %q", op)
		}
		if e.name.Version = p.word(); e.name.Version == "" {
			return nil, fmt.Errorf("%s %s: a version is missing", e.name.Name, op)
		}
	}
	return e, nil
}

// written contains the operators as written in spec files and rich dependencies.
var written = map[string]packaging.Operator{
	"<": packaging.Earlier, "<=": packaging.AtMost, "=<": packaging.AtMost, "=": packaging.Exactly, "==": packaging.Exactly,
	">=": packaging.AtLeast, "=>": packaging.AtLeast, ">": packaging.Later,
}

// group parses "(a op b op c)".
func (p *richParser) group(depth int) (*expression, error) {
	if depth++; depth > maxRichDepth {
		return nil, errTooComplex
	}
	p.skip()
	if !strings.HasPrefix(p.rest, "(") {
		return nil, errors.New("it does not begin with a bracket")
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

// take adds an operator; it returns an error if the operator is not allowed here.
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
		return errors.New("the closing bracket is missing")
	default:
		return fmt.Errorf("unknown operator %q", op)
	}
	return fmt.Errorf("%q cannot come after %q", op, e.op)
}
