// Package refusal has the error type for refused requests. An error has a kind, which
// determines the exit code, and advice for the user. It imports nothing of kubexm.
package refusal

import (
	"fmt"

	"github.com/agnivade/levenshtein"
)

// Kind is the cause of an error. Each kind has its own exit code.
type Kind int

// The kinds, as docs/reference/exit-codes.md lists them.
const (
	Failed      Kind = iota // an operation failed, for a reason that is none of the other kinds
	Usage                   // wrong flags or arguments, or a config with errors
	Hosts                   // hosts do not meet the requirements; nothing was changed
	Content                 // an invalid bundle, lock or artifact
	Interrupted             // the user interrupted the command
)

// Error is the refusal of a request.
type Error struct {
	Err    error
	Kind   Kind
	Advice string // what the user can do; may be empty
	Code   string // code of docs/reference/bundle-format.md, if no other package's error has it; may be empty
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// DidYouMean returns a suggestion to append to the message that rejects word: the closest of
// names, or "" if none is close.
func DidYouMean(word string, names []string) string {
	best, distance := "", len(word)/2+1
	for _, n := range names {
		if d := levenshtein.ComputeDistance(word, n); d < distance {
			best, distance = n, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}
