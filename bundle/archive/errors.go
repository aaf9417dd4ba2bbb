package archive

import (
	"fmt"
	"strings"
)

// Code says what was found wrong, in a word that stays the same between
// versions. Use errors.Is(err, archive.ErrDigest) to ask for one.
type Code string

// Error gives the code's word.
func (c Code) Error() string { return string(c) }

// The codes; docs/bundle-format.md explains each.
const (
	ErrFormat     Code = "archive-format"     // not a bundle archive at all
	ErrTruncated  Code = "archive-truncated"  // the file ends early
	ErrTrailing   Code = "archive-trailing"   // something stands after the end
	ErrIndex      Code = "archive-index"      // the index does not match its checksum, its grammar or the file
	ErrFrame      Code = "archive-frame"      // the zstd framing is broken, or not the prescribed one
	ErrWindow     Code = "archive-window"     // a zstd frame asks for too large a window
	ErrName       Code = "archive-name"       // a member name that the format does not know
	ErrType       Code = "archive-type"       // a member that is not a regular file
	ErrHeader     Code = "archive-header"     // a tar header other than the one that name and size give
	ErrOrder      Code = "archive-order"      // members out of order
	ErrDuplicate  Code = "archive-duplicate"  // a member twice
	ErrSize       Code = "archive-size"       // content shorter or longer than it should be
	ErrLimit      Code = "archive-limit"      // more content or members than allowed
	ErrDigest     Code = "archive-digest"     // content that does not hash to its digest
	ErrPadding    Code = "archive-padding"    // tar padding that is not zeros
	ErrEnd        Code = "archive-end"        // the tar's end is missing or damaged
	ErrSlot       Code = "archive-slot"       // the signature slot breaks its grammar or is too small
	ErrMissing    Code = "archive-missing"    // a member that should be there is not
	ErrUnexpected Code = "archive-unexpected" // a blob that the bundle's root does not know
	ErrExists     Code = "archive-exists"     // the target of an extraction exists already
	ErrBusy       Code = "archive-busy"       // another process writes the same file
	ErrVolume     Code = "archive-volume"     // a volume is missing, cut, damaged, misnamed or another bundle's
	ErrInput      Code = "archive-input"      // the writer was asked for something the format cannot hold
)

// noOffset marks an Error that is not about one place in the file.
const noOffset = -1

// Error is one finding about an archive.
type Error struct {
	Code   Code
	Volume string // the file's name, where the archive lies in volumes: "x.tar.zst.002"
	Member string // the tar member's name as far as it is known, else ""
	Offset int64  // byte of the file near which it was found, -1 when not known
	Detail string // what was found, lower case
	Advice string // what can be done about it, where that is known; not part of Error's text
	Err    error  // what caused it, may be nil
}

// Error gives volume, member, place, detail, cause and code on one line. Names from
// hostile archives are quoted.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Volume != "" {
		b.WriteString(e.Volume + ": ")
	}
	if e.Member != "" {
		name := e.Member
		if checkName(name) != nil {
			name = fmt.Sprintf("%.120q", name)
		}
		b.WriteString(name + ": ")
	}
	b.WriteString(e.Detail)
	if e.Offset >= 0 {
		fmt.Fprintf(&b, " at byte %d", e.Offset)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	fmt.Fprintf(&b, " (%s)", e.Code)
	return b.String()
}

// Unwrap gives the code and the cause to errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Code}
	}
	return []error{e.Code, e.Err}
}

// fault makes an Error about member m, which may be "".
func fault(code Code, m string, offset int64, format string, args ...any) *Error {
	return &Error{Code: code, Member: m, Offset: offset, Detail: fmt.Sprintf(format, args...)}
}

// byteCount words a size.
func byteCount(n int64) string {
	if n == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}
