package steps

import (
	"errors"
	"fmt"

	"github.com/mensylisir/kubexm/steps/connector"
)

// Error is what the engine adds at the border of a step: which one, and where.
type Error struct {
	Node, Host string
	Err        error
}

func (e *Error) Error() string { return fmt.Sprintf("%s on %s: %v", e.Node, e.Host, e.Err) }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// advised is an error with what the reader can do about it.
type advised struct {
	error
	advice string
}

func (a *advised) Unwrap() error { return a.error }

// Advise attaches what the reader can do about err; nil stays nil.
func Advise(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &advised{err, fmt.Sprintf(format, args...)}
}

// Advice gives all that was attached to err or that it knows itself, the
// outermost first.
func Advice(err error) []string {
	var out []string
	var walk func(error)
	walk = func(err error) {
		switch e := err.(type) { //nolint:errorlint // every layer is looked at, one by one
		case nil:
			return
		case *advised:
			out = append(out, e.advice)
		case connector.Advised:
			out = append(out, e.Advice())
		}
		switch e := err.(type) { //nolint:errorlint // the same
		case interface{ Unwrap() error }:
			walk(e.Unwrap())
		case interface{ Unwrap() []error }:
			for _, x := range e.Unwrap() {
				walk(x)
			}
		}
	}
	walk(err)
	return out
}

// Finding is one thing that a read-only check holds against a host.
type Finding struct {
	Host    string `json:"host"`
	Check   string `json:"check"` // the step's name
	What    string `json:"what"`
	Advice  string `json:"advice,omitempty"`
	Warning bool   `json:"warning,omitempty"` // said, and passed
	Note    bool   `json:"note,omitempty"`    // said, and passed; nobody has to do anything
}

// The levels of findings, the worst first.
const (
	LevelError   = "error"
	LevelWarning = "warning"
	LevelNote    = "note"
)

// Level says how bad a finding is: an error lets nothing be changed.
func (f Finding) Level() string {
	switch {
	case f.Note:
		return LevelNote
	case f.Warning:
		return LevelWarning
	}
	return LevelError
}

// Findings is an error that holds everything a check found, so that a person
// mends a host once.
type Findings []Finding

func (f Findings) Error() string {
	s := ""
	for i, x := range f {
		if i > 0 {
			s += "; "
		}
		s += x.What
	}
	return s
}

// OrNil gives the findings as an error, nil where there are none.
func (f Findings) OrNil() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// Split takes the error of a run apart: what checks hold against hosts, and the single
// errors of all else.
func Split(err error) (found []Finding, failed []error) {
	for _, e := range Each(err) {
		var fs Findings
		switch {
		case errors.As(e, &fs):
			found = append(found, fs...)
		case e != nil:
			failed = append(failed, e)
		}
	}
	return found, failed
}

// Each gives the single errors of a joined one; of another that one.
func Each(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok { // the outermost join alone is taken apart
		var out []error
		for _, e := range j.Unwrap() {
			out = append(out, Each(e)...)
		}
		return out
	}
	return []error{err}
}
