// Package refusal has the errors that say whose mistake it is and what to do about it,
// in the words that a command prints. It imports nothing of kubexm.
package refusal

import (
	"fmt"

	"github.com/agnivade/levenshtein"
)

// Kind says where the mistake lies. A command has an exit code for each.
type Kind int

// The kinds, as docs/exit-codes.md lists them.
const (
	Failed      Kind = iota // nobody's mistake: something did not work
	Usage                   // wrong flags or arguments, or a config with errors
	Hosts                   // hosts are not as they have to be; nothing was changed
	Content                 // a bundle, lock or artifact that is not what it should be
	Interrupted             // a person ended it
)

// Error refuses what a person asked for.
type Error struct {
	Err    error
	Kind   Kind
	Advice string // what the person can do; may be empty
	Word   string // docs/bundle-format.md's, of a refusal that no other package words; may be empty
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// DidYouMean names the closest of names, if one is close: the end of a refusal of word.
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
