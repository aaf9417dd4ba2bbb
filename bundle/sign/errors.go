package sign

import "fmt"

// Code says why a signature does not count, in a word that stays the same
// between versions. Use errors.Is(err, sign.ErrSubject) to ask for one.
type Code string

// Error gives the code's word.
func (c Code) Error() string { return string(c) }

// The codes; docs/trust.md explains each.
const (
	ErrFormat        Code = "signature-format"         // not a Sigstore bundle that this version reads
	ErrCount         Code = "signature-count"          // an envelope with no signature in it, or with several
	ErrPayloadType   Code = "signature-payload-type"   // the envelope holds something other than an in-toto statement
	ErrPayload       Code = "signature-payload"        // what was signed is no statement
	ErrPredicateType Code = "signature-predicate-type" // a statement about something else
	ErrKey           Code = "signature-key"            // made with another key
	ErrInvalid       Code = "signature-invalid"        // the key is right and the signature is not
	ErrIdentity      Code = "signature-identity"       // made by somebody else
	ErrProof         Code = "signature-proof"          // certificate, log entry or time of a keyless signature do not hold
	ErrSubject       Code = "signature-subject"        // good, and about something else
	ErrKeyFile       Code = "key-format"               // a file that is no key, or not of a kind that is used here
	ErrPassword      Code = "key-password"             // the private key does not open with the password
	ErrKeyMode       Code = "key-mode"                 // others may read the private key, or the password
	ErrTrustedRoot   Code = "trusted-root"             // a file that is no trusted root
)

// Error is one finding about a signature or a key.
type Error struct {
	Code   Code
	Detail string // what was found, lower case
	Err    error  // what caused it, may be nil
}

// Error gives detail, cause and code on one line.
func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %v (%s)", e.Detail, e.Err, e.Code)
	}
	return fmt.Sprintf("%s (%s)", e.Detail, e.Code)
}

// Unwrap gives the code and the cause to errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Code}
	}
	return []error{e.Code, e.Err}
}

func fault(code Code, err error, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...), Err: err}
}
