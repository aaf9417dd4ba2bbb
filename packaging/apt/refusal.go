package apt

import (
	"errors"
	"strings"
)

// Why a repository is refused; a Refusal wraps one of them.
var (
	ErrUnsigned     = errors.New("it bears no signature")
	ErrNoKeyring    = errors.New("the keyring for it cannot be read")
	ErrUnknownKey   = errors.New("it is signed with a key that is not known here")
	ErrBadSignature = errors.New("its signature does not fit what it says: it was changed, or damaged on the way")
	ErrExpiredKey   = errors.New("it is signed with a key that has expired or was withdrawn")
	ErrWeak         = errors.New("it is signed or listed with an algorithm that is too weak")
	ErrStale        = errors.New("it is past its Valid-Until")
	ErrFuture       = errors.New("it is of the future")
	ErrOtherRelease = errors.New("it is not the release that was asked for")
	ErrMalformed    = errors.New("it cannot be read")
	ErrDigest       = errors.New("it differs from what the signed release says of it")
)

// Refusal is an error that says which repository is not used, and why.
type Refusal struct {
	Repository string   // address and suite
	Reason     error    // one of the above
	Detail     string   // which file, which date, what instead
	Keys       []string // the keys that signed, as far as that is the reason
	Looked     []string // where keys were looked for
	Advice     string
}

func (e *Refusal) Error() string {
	var b strings.Builder
	b.WriteString(e.Repository + ": " + e.Reason.Error())
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	if len(e.Keys) > 0 {
		b.WriteString("; signed by " + strings.Join(e.Keys, ", "))
	}
	if len(e.Looked) > 0 {
		b.WriteString("; keys were looked for in " + strings.Join(e.Looked, ", "))
	}
	if e.Advice != "" {
		b.WriteString("; " + e.Advice)
	}
	return b.String()
}

// Unwrap gives the reason.
func (e *Refusal) Unwrap() error { return e.Reason }
