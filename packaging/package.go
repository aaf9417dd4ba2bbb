package packaging

import (
	"strings"
)

// Operator compares the version of a package with one that is asked for.
type Operator string

// The operators, as both families mean them; AnyVersion asks for none.
const (
	AnyVersion Operator = ""
	Earlier    Operator = "<"
	AtMost     Operator = "<="
	Exactly    Operator = "="
	AtLeast    Operator = ">="
	Later      Operator = ">"
)

// Relation names packages: all that have the name, or provide it, in the
// versions that it admits.
type Relation struct {
	Name     string
	Operator Operator
	Version  string
	// Own leaves out what only provides the name.
	Own bool
	// With and Without narrow it to packages that meet, or do not meet, these
	// too: rpm's rich dependencies.
	With, Without []Relation
}

// String gives "libc6 (>= 2.36)".
func (r Relation) String() string {
	var b strings.Builder
	b.WriteString(r.Name)
	if r.Operator != AnyVersion {
		b.WriteString(" (" + string(r.Operator) + " " + r.Version + ")")
	}
	for _, w := range r.With {
		b.WriteString(" with " + w.String())
	}
	for _, w := range r.Without {
		b.WriteString(" without " + w.String())
	}
	return b.String()
}

// Requirement is what a package needs: one of Any, where all of If are there.
// Without If that is always; without Any, not all of If may be there.
type Requirement struct {
	Any []Relation // the first is wanted most
	If  []Relation // rpm's rich dependencies: "a if b"
}

// String gives "a (>= 1) | b", "a if b and c", "not (b and c)".
func (r Requirement) String() string {
	if len(r.Any) == 0 {
		return "not (" + strings.TrimPrefix(Requirement{Any: []Relation{{}}, If: r.If}.String(), " if ") + ")"
	}
	var any []string
	for _, x := range r.Any {
		any = append(any, x.String())
	}
	s := strings.Join(any, " | ")
	for i, x := range r.If {
		s += map[bool]string{true: " if ", false: " and "}[i == 0] + x.String()
	}
	return s
}

// Package is one package of one repository, as its metadata says.
type Package struct {
	Name    string
	Version string // whole, with epoch and release
	Arch    string // in the distribution's words: "amd64", "all", "x86_64", "noarch"

	Provides  []Relation // beside its own name; without an operator: no version
	Requires  []Requirement
	Conflicts []Relation // what may not stand beside it; itself never counts
	Obsoletes []Relation // what it takes the place of; by name alone

	// Base tells that every installation has it, as Essential: yes does.
	Base bool

	Repository string // which repository it is of, as its source calls it
	Location   string // where the file is, relative to the repository
	Size       int64  // bytes of the file
	SHA256     string // of the file, lower-case hex
	SHA512     string // of the file, where the metadata has no SHA256
	// Record is what the metadata says of it, whole and as it stands, for who
	// writes a repository of some packages.
	Record []byte
}

// String gives "socat 1.7.4.4-2 (amd64)".
func (p *Package) String() string { return p.Name + " " + p.Version + " (" + p.Arch + ")" }
