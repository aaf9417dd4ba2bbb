package apt

import (
	"bytes"
	"fmt"
	"iter"
	"strings"

	"github.com/mensylisir/kubexm/packaging"
)

// operators are the operators of control files. The obsolete "<" and ">" have dpkg's
// meaning.
var operators = map[string]packaging.Operator{
	"<<": packaging.Earlier,
	"<=": packaging.AtMost,
	"<":  packaging.AtMost,
	"=":  packaging.Exactly,
	">=": packaging.AtLeast,
	">":  packaging.AtLeast,
	">>": packaging.Later,
}

// relation parses "name", "name:any (>= 1)". The qualifier stays part of the name, except
// for native, which is the same as no qualifier: only one architecture is read, and a
// package that allows "name:any" provides it.
func relation(s, native string) (packaging.Relation, error) {
	s = strings.TrimSpace(s)
	name, rest := s, ""
	if i := strings.IndexAny(s, " \t\n([<"); i >= 0 {
		name, rest = s[:i], strings.TrimSpace(s[i:])
	}
	if !validName(name) {
		return packaging.Relation{}, fmt.Errorf("%q is not a package name", s)
	}
	if base, arch, ok := strings.Cut(name, ":"); ok && (arch == native || arch == "native") {
		name = base
	}
	r := packaging.Relation{Name: name}
	if rest == "" {
		return r, nil
	}
	inner, ok := strings.CutPrefix(rest, "(")
	if inner, ok2 := strings.CutSuffix(inner, ")"); ok && ok2 {
		inner = strings.TrimSpace(inner)
		n := len(inner) - len(strings.TrimLeft(inner, "<=>"))
		op, known := operators[inner[:n]]
		version := strings.TrimSpace(inner[n:])
		if known && version != "" && !strings.ContainsAny(version, " \t\n()") {
			r.Operator, r.Version = op, version
			return r, nil
		}
	}
	return packaging.Relation{}, fmt.Errorf("%q is not a valid package relation", s)
}

// validName reports whether a name has only the characters of package names, and at most
// one qualifier.
func validName(s string) bool {
	colons := 0
	for i := range len(s) {
		c := s[i]
		switch {
		case digit(c), c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		case i > 0 && (c == '+' || c == '-' || c == '.' || c == '_'):
		case i > 0 && c == ':':
			colons++
		default:
			return false
		}
	}
	return s != "" && colons <= 1 && s[len(s)-1] != ':'
}

// alternatives parses "a | b (>= 1)".
func alternatives(s, native string) ([]packaging.Relation, error) {
	out := make([]packaging.Relation, 0, 1+strings.Count(s, "|"))
	for x := range strings.SplitSeq(s, "|") {
		r, err := relation(x, native)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// elements returns the non-empty elements of a comma-separated list.
func elements(list []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for x := range bytes.SplitSeq(list, []byte{','}) {
			if x = bytes.TrimSpace(x); len(x) > 0 && !yield(x) {
				return
			}
		}
	}
}
