package sign

import "fmt"

// Code identifies why a signature or a key is rejected. Codes stay the same between
// versions. Test for one with errors.Is(err, sign.ErrSubject).
type Code string

// Error returns the code.
func (c Code) Error() string { return string(c) }

// The codes; docs/trust.md explains each.
const (
	ErrFormat        Code = "signature-format"         // not a Sigstore bundle that this version reads
	ErrCount         Code = "signature-count"          // an envelope with no signature in it, or with several
	ErrPayloadType   Code = "signature-payload-type"   // the payload is not an in-toto statement
	ErrPayload       Code = "signature-payload"        // the payload is not a valid statement
	ErrPredicateType Code = "signature-predicate-type" // a statement with another predicate type
	ErrKey           Code = "signature-key"            // signed with another key
	ErrInvalid       Code = "signature-invalid"        // the key matches, but the signature is not valid
	ErrIdentity      Code = "signature-identity"       // signed by another identity
	ErrProof         Code = "signature-proof"          // certificate, log entry or time of a keyless signature is not valid
	ErrSubject       Code = "signature-subject"        // valid, but about another subject
	ErrKeyFile       Code = "key-format"               // not a key file, or an unsupported kind of key
	ErrPassword      Code = "key-password"             // the password does not decrypt the private key
	ErrKeyMode       Code = "key-mode"                 // other users can read the private key or the password
	ErrTrustedRoot   Code = "trusted-root"             // not a trusted root file
)

// Error is one finding about a signature or a key.
type Error struct {
	Code   Code
	Detail string // the finding, lower case
	Err    error  // the cause; may be nil
}

// Error returns detail, cause and code on one line.
func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %v (%s)", e.Detail, e.Err, e.Code)
	}
	return fmt.Sprintf("%s (%s)", e.Detail, e.Code)
}

// Unwrap returns the code and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Code}
	}
	return []error{e.Code, e.Err}
}

func fault(code Code, err error, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...), Err: err}
}
