package fetch

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// DigestError reports that content does not match its pinned digest.
type DigestError struct {
	Name    string // the artifact's id, the path of an entry in it, or an image's reference
	Address string // upstream's address
	Target  string // the requested address, if it differs from Address
	Want    string // pinned sha256
	Got     string // sha256 of the received content
}

// Error names both digests and what to do.
func (e *DigestError) Error() string {
	return fmt.Sprintf("%s has sha256 %s, expected %s%s; upstream changed it, or a mirror serves another file: "+
		"compare with what upstream publishes, then lock again, or fix the mirror", e.Name, bare(e.Got), bare(e.Want), from(e.Name, e.Address, e.Target))
}

// SizeError reports that content is longer or shorter than its pinned size.
type SizeError struct {
	Name, Address, Target string // as in DigestError
	Want, Got             int64  // bytes
}

// Error names both sizes and what to do.
func (e *SizeError) Error() string {
	return fmt.Sprintf("%s has %d bytes, expected %d%s; upstream changed it, a mirror serves another file, or it was truncated: "+
		"compare with what upstream publishes, then lock again, or fix the mirror", e.Name, e.Got, e.Want, from(e.Name, e.Address, e.Target))
}

// StatusError is a response with an unexpected status.
type StatusError struct {
	Method  string
	Address string // requested address, without credentials and query
	Code    int    // HTTP status code
	Message string // message of the server, on one line and shortened
	Advice  string // what to do; "" means the default for the status

	RetryAfter time.Duration // wait that the server requests; 0 if none
}

// Error returns the status and what to do.
func (e *StatusError) Error() string {
	s := fmt.Sprintf("%s %s: %d %s", e.Method, e.Address, e.Code, http.StatusText(e.Code))
	if e.Message != "" {
		s += ": " + e.Message
	}
	switch {
	case e.Advice != "":
		s += "; " + e.Advice
	case e.absent():
		s += "; check that this version exists upstream, and that a mirror in spec.sources has it"
	case e.Code == http.StatusUnauthorized, e.Code == http.StatusForbidden:
		s += "; log in, to a registry with docker login, to a chart repository with helm repo add --username, or check that the name is right"
	case e.Code == http.StatusTooManyRequests:
		s += "; wait, log in to raise the limit, or set a mirror in spec.sources"
	}
	return s
}

// absent reports whether nothing exists at the address.
func (e *StatusError) absent() bool {
	return e.Code == http.StatusNotFound || e.Code == http.StatusGone
}

// temporary reports whether a retry may succeed.
func (e *StatusError) temporary() bool {
	switch e.Code {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return e.Code >= 500
}

// StallError reports that a source stopped sending.
type StallError struct {
	Address string
	Idle    time.Duration // time in which almost nothing was received
}

// Error returns the address and the time.
func (e *StallError) Error() string {
	return fmt.Sprintf("%s sent nothing for %s", e.Address, e.Idle)
}

// RedirectError reports that an address has too many redirects.
type RedirectError struct {
	Address string // first requested address, without credentials and query
	Next    string // target of the last redirect
}

// Error returns both addresses and what to do.
func (e *RedirectError) Error() string {
	return fmt.Sprintf("GET %s: stopped after %d redirects, the last one to %s; check the address, or set a mirror in spec.sources", e.Address, maxRedirects, e.Next)
}

// PlainHTTPError reports that an address would be requested over plain http, which is not allowed.
type PlainHTTPError struct{ Address string }

// Error returns the address and how to allow plain http.
func (e *PlainHTTPError) Error() string {
	return fmt.Sprintf("refused to request %s over plain http; use https, or allow plain http for it in spec.sources", e.Address)
}

// from returns the source of content for an error, unless its name contains it.
func from(name, address, target string) string {
	switch {
	case address == "" || address == name && (target == "" || target == address):
		return ""
	case address == name || strings.HasPrefix(address, name+" "):
		return " (requested from " + target + ")"
	case target == "" || target == address:
		return " (" + address + ")"
	}
	return " (" + address + ", requested from " + target + ")"
}

func bare(d string) string { return strings.TrimPrefix(d, "sha256:") }
