package fetch

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// DigestError says that content is not what its pin says.
type DigestError struct {
	Name    string // the artifact's id, a member's path in it, or an image's reference
	Address string // upstream's own
	Target  string // where it was asked for, if that is not Address
	Want    string // sha256 of the pin
	Got     string // sha256 of what came
}

// Error names both digests and what to do.
func (e *DigestError) Error() string {
	return fmt.Sprintf("%s has sha256 %s, expected %s%s; upstream changed it, or a mirror serves another file: "+
		"compare with what upstream publishes, then lock again, or mend the mirror", e.Name, bare(e.Got), bare(e.Want), from(e.Name, e.Address, e.Target))
}

// SizeError says that content is longer or shorter than its pin says.
type SizeError struct {
	Name, Address, Target string // as in DigestError
	Want, Got             int64  // bytes
}

// Error names both sizes and what to do.
func (e *SizeError) Error() string {
	return fmt.Sprintf("%s has %d bytes, expected %d%s; upstream changed it, a mirror serves another file, or it was cut short: "+
		"compare with what upstream publishes, then lock again, or mend the mirror", e.Name, e.Got, e.Want, from(e.Name, e.Address, e.Target))
}

// StatusError is an answer other than the one asked for.
type StatusError struct {
	Method  string
	Address string // asked, without credentials and query
	Code    int    // of http
	Message string // what the server said, on one line, cut short
	Advice  string // what to do, where that is not what the code tells

	RetryAfter time.Duration // how long the server asks to wait; 0 if it does not say
}

// Error gives the status and what to do.
func (e *StatusError) Error() string {
	s := fmt.Sprintf("%s %s: %d %s", e.Method, e.Address, e.Code, http.StatusText(e.Code))
	if e.Message != "" {
		s += ": " + e.Message
	}
	switch {
	case e.Advice != "":
		s += "; " + e.Advice
	case e.absent():
		s += "; check that this version exists upstream, and that a mirror in spec.sources holds it"
	case e.Code == http.StatusUnauthorized, e.Code == http.StatusForbidden:
		s += "; log in, to a registry with docker login, to a chart repository with helm repo add --username, or check that the name is right"
	case e.Code == http.StatusTooManyRequests:
		s += "; wait, log in to raise the limit, or name a mirror in spec.sources"
	}
	return s
}

// absent tells whether there is nothing at the address.
func (e *StatusError) absent() bool {
	return e.Code == http.StatusNotFound || e.Code == http.StatusGone
}

// temporary tells whether asking again may help.
func (e *StatusError) temporary() bool {
	switch e.Code {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return e.Code >= 500
}

// StallError says that a source stopped sending.
type StallError struct {
	Address string
	Idle    time.Duration // how long next to nothing came
}

// Error names the address and the time.
func (e *StallError) Error() string {
	return fmt.Sprintf("%s sent nothing for %s", e.Address, e.Idle)
}

// RedirectError says that an address leads on and on.
type RedirectError struct {
	Address string // asked first, without credentials and query
	Next    string // where the last answer leads
}

// Error names both addresses and what to do.
func (e *RedirectError) Error() string {
	return fmt.Sprintf("GET %s: stopped after %d redirects, the last one to %s; check the address, or name a mirror in spec.sources", e.Address, maxRedirects, e.Next)
}

// PlainHTTPError says that an address would have been asked over plain http
// without leave.
type PlainHTTPError struct{ Address string }

// Error names the address and how to give leave.
func (e *PlainHTTPError) Error() string {
	return fmt.Sprintf("refused to ask %s over plain http; use https, or allow plain http for it in spec.sources", e.Address)
}

// from says where content is from, as far as its name does not say it.
func from(name, address, target string) string {
	switch {
	case address == "" || address == name && (target == "" || target == address):
		return ""
	case address == name || strings.HasPrefix(address, name+" "):
		return " (asked for at " + target + ")"
	case target == "" || target == address:
		return " (" + address + ")"
	}
	return " (" + address + ", asked for at " + target + ")"
}

func bare(d string) string { return strings.TrimPrefix(d, "sha256:") }
