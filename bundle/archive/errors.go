package archive

import (
	"fmt"
	"strings"
)

// Code identifies a kind of finding. Codes stay the same between versions. Test for one
// with errors.Is(err, archive.ErrDigest).
type Code string

// Error returns the code.
func (c Code) Error() string { return string(c) }

// The codes; docs/reference/bundle-format.md explains each.
const (
	ErrFormat     Code = "archive-format"     // not a bundle archive at all
	ErrTruncated  Code = "archive-truncated"  // the file is truncated
	ErrTrailing   Code = "archive-trailing"   // data after the end
	ErrIndex      Code = "archive-index"      // the index does not match its checksum, its grammar or the file
	ErrFrame      Code = "archive-frame"      // the zstd framing is broken, or not the prescribed one
	ErrWindow     Code = "archive-window"     // a zstd frame requires too large a window
	ErrName       Code = "archive-name"       // an entry name that the format does not define
	ErrType       Code = "archive-type"       // an entry that is not a regular file
	ErrHeader     Code = "archive-header"     // a tar header other than the one prescribed for name and size
	ErrOrder      Code = "archive-order"      // entries out of order
	ErrDuplicate  Code = "archive-duplicate"  // a duplicate entry
	ErrSize       Code = "archive-size"       // content shorter or longer than it should be
	ErrLimit      Code = "archive-limit"      // more content or entries than allowed
	ErrDigest     Code = "archive-digest"     // content that does not hash to its digest
	ErrPadding    Code = "archive-padding"    // tar padding that is not zeros
	ErrEnd        Code = "archive-end"        // the tar's end is missing or damaged
	ErrSlot       Code = "archive-slot"       // the signature slot has invalid syntax or is too small
	ErrMissing    Code = "archive-missing"    // a required entry is missing
	ErrUnexpected Code = "archive-unexpected" // a blob that the bundle's root does not list
	ErrExists     Code = "archive-exists"     // the target of an extraction already exists
	ErrBusy       Code = "archive-busy"       // another process is writing the same file
	ErrVolume     Code = "archive-volume"     // a volume is missing, truncated, damaged, misnamed or of another bundle
	ErrInput      Code = "archive-input"      // the writer's input exceeds the format
)

// noOffset marks an Error without a place in the file.
const noOffset = -1

// Error is one finding about an archive.
type Error struct {
	Code   Code
	Volume string // the volume's file name, if the archive is in volumes: "x.tar.zst.002"
	Member string // the tar entry's name, or "" if unknown
	Offset int64  // offset in the file near the finding, -1 if unknown
	Detail string // the finding, lower case
	Advice string // what the user can do, if known; not part of Error's text
	Err    error  // the cause; may be nil
}

// Error returns volume, entry, detail, place, cause and code on one line. Names from
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

// Unwrap returns the code and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Code}
	}
	return []error{e.Code, e.Err}
}

// fault returns an Error about entry m, which may be "".
func fault(code Code, m string, offset int64, format string, args ...any) *Error {
	return &Error{Code: code, Member: m, Offset: offset, Detail: fmt.Sprintf(format, args...)}
}

// byteCount formats a size in bytes.
func byteCount(n int64) string {
	if n == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}
