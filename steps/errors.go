package steps

import (
	"errors"
	"fmt"

	"github.com/mensylisir/kubexm/steps/connector"
)

// Error is a step's error with the step and the host. The engine adds it.
type Error struct {
	Node, Host string
	Err        error
}

func (e *Error) Error() string { return fmt.Sprintf("%s on %s: %v", e.Node, e.Host, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// advised is an error with advice for the user.
type advised struct {
	error
	advice string
}

func (a *advised) Unwrap() error { return a.error }

// Advise attaches advice for the user to err. A nil err stays nil.
func Advise(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &advised{err, fmt.Sprintf(format, args...)}
}

// Advice returns all advice in err's chain, the outermost first: what Advise attached,
// and the advice of errors that are connector.Advised.
func Advice(err error) []string {
	var out []string
	var walk func(error)
	walk = func(err error) {
		switch e := err.(type) { //nolint:errorlint // the walk visits every layer
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

// Finding is one problem that a read-only check found on a host.
type Finding struct {
	Host    string `json:"host"`
	Check   string `json:"check"` // the step's name
	What    string `json:"what"`
	Advice  string `json:"advice,omitempty"`
	Warning bool   `json:"warning,omitempty"` // reported; does not fail the check
	Note    bool   `json:"note,omitempty"`    // information only; no action is required
}

// The levels of findings, the worst first.
const (
	LevelError   = "error"
	LevelWarning = "warning"
	LevelNote    = "note"
)

// Level returns the severity of a finding. A finding of LevelError stops all changes.
func (f Finding) Level() string {
	switch {
	case f.Note:
		return LevelNote
	case f.Warning:
		return LevelWarning
	}
	return LevelError
}

// Findings is an error with all findings of a check, so that an operator can fix a host
// in one pass.
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

// OrNil returns the findings as an error, or nil if there are none.
func (f Findings) OrNil() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// Split separates the error of a run into the findings of checks and all other errors.
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

// Each returns the errors that err joins, or err itself if it joins none.
func Each(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok { // joins below a wrapped error stay together
		var out []error
		for _, e := range j.Unwrap() {
			out = append(out, Each(e)...)
		}
		return out
	}
	return []error{err}
}
