package packaging

import (
	"strings"
)

// Operator compares the version of a package with a required one.
type Operator string

// The operators, with the same meaning for deb and rpm; AnyVersion accepts all versions.
const (
	AnyVersion Operator = ""
	Earlier    Operator = "<"
	AtMost     Operator = "<="
	Exactly    Operator = "="
	AtLeast    Operator = ">="
	Later      Operator = ">"
)

// Relation selects packages: all that have the name, or provide it, in the versions that
// it allows.
type Relation struct {
	Name     string
	Operator Operator
	Version  string
	// Own excludes packages that only provide the name.
	Own bool
	// With and Without restrict it to packages that also meet, or do not meet, these
	// relations: rpm's rich dependencies.
	With, Without []Relation
}

// String returns a text such as "libc6 (>= 2.36)".
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

// Requirement is a dependency: one of Any, if all of If are installed. Without If it is
// unconditional. Without Any, it means that not all of If may be installed.
type Requirement struct {
	Any []Relation // in order of preference
	If  []Relation // rpm's rich dependencies: "a if b"
}

// String returns a text such as "a (>= 1) | b", "a if b and c", "not (b and c)".
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

// Package is one package of one repository, as described by its metadata.
type Package struct {
	Name    string
	Version string // complete, with epoch and release
	Arch    string // as named by the distribution: "amd64", "all", "x86_64", "noarch"

	Provides  []Relation // besides its own name; without an operator: no version
	Requires  []Requirement
	Conflicts []Relation // packages that it cannot be installed with; never itself
	Obsoletes []Relation // packages that it replaces, by their own name only

	// Base is set for packages that every installation has, such as Essential: yes.
	Base bool

	Repository string // name of its repository
	Location   string // path of the file, relative to the repository
	Size       int64  // bytes of the file
	SHA256     string // of the file, lower-case hex
	SHA512     string // of the file, if the metadata has no SHA256
	// Record is the complete, unchanged metadata of the package, for writing a
	// repository of selected packages.
	Record []byte
}

// String returns a text such as "socat 1.7.4.4-2 (amd64)".
func (p *Package) String() string { return p.Name + " " + p.Version + " (" + p.Arch + ")" }
