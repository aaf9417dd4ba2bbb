package document

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity is error or warning.
type Severity int

const (
	// Error means that the document cannot be used.
	Error Severity = iota
	// Warning means that the document can be used, but may not have the intended effect.
	Warning
)

// String returns "error" or "warning".
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// MarshalText returns the text of String, for JSON output.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Problem is one finding in a document: its place, what is wrong, and what to do about it. Line
// and Column count from 1; 0 means unknown.
type Problem struct {
	Severity Severity `json:"severity"`
	File     string   `json:"file,omitempty"`
	Line     int      `json:"line,omitempty"`
	Column   int      `json:"column,omitempty"`
	Path     string   `json:"path,omitempty"`   // "spec.hosts[2].address"
	Message  string   `json:"message"`          // lower case, no full stop
	Advice   string   `json:"advice,omitempty"` // what to do, in the imperative
}

// String returns "file:line:column: severity: path: message; advice" without unknown parts.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File + ":")
	}
	if p.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", p.Line, p.Column)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	b.WriteString(p.Severity.String() + ": ")
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	if p.Advice != "" {
		b.WriteString("; " + p.Advice)
	}
	return b.String()
}

// Problems are all findings in a document, errors and warnings. All of them are collected
// before decoding fails, so that a user can fix them together.
type Problems []Problem

// Err returns p as an error if p contains an error, else nil.
func (p Problems) Err() error {
	if slices.ContainsFunc(p, func(x Problem) bool { return x.Severity == Error }) {
		return p
	}
	return nil
}

// Error lists all problems, one per line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, x := range p {
		lines[i] = x.String()
	}
	return strings.Join(lines, "\n")
}

// Sort orders p by place, errors before warnings at the same place.
func (p Problems) Sort() {
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
}

// In sets the file name of problems that have none, and returns p.
func (p Problems) In(file string) Problems {
	for i := range p {
		if p[i].File == "" {
			p[i].File = file
		}
	}
	return p
}
