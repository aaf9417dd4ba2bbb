package apt

import (
	"errors"
	"strings"
)

// The reasons to refuse a repository; a Refusal wraps one of them.
var (
	ErrUnsigned     = errors.New("it is not signed")
	ErrNoKeyring    = errors.New("its keyring cannot be read")
	ErrUnknownKey   = errors.New("it is signed with an unknown key")
	ErrBadSignature = errors.New("its signature does not match its content: it was modified or damaged")
	ErrExpiredKey   = errors.New("it is signed with a key that has expired or was revoked")
	ErrWeak         = errors.New("its signature or digest algorithm is too weak")
	ErrStale        = errors.New("it has expired (Valid-Until)")
	ErrFuture       = errors.New("its date is in the future")
	ErrOtherRelease = errors.New("it is not the requested release")
	ErrMalformed    = errors.New("it cannot be read")
	ErrDigest       = errors.New("it differs from the size or digest in the signed release")
)

// Refusal is the error for a repository that is not used.
type Refusal struct {
	Repository string   // address and suite
	Reason     error    // one of the above
	Detail     string   // such as the file, the date, or what was found instead
	Keys       []string // the signing keys, if they are the reason
	Looked     []string // where keys were searched
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
		b.WriteString("; keys were searched in " + strings.Join(e.Looked, ", "))
	}
	if e.Advice != "" {
		b.WriteString("; " + e.Advice)
	}
	return b.String()
}

// Unwrap returns the reason.
func (e *Refusal) Unwrap() error { return e.Reason }
