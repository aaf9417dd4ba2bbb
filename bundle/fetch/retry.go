package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// progressBytes is the progress after which an attempt does not count as failed: a proxy
// that closes every connection after some time still lets a large file pass.
const progressBytes = 64 << 10

// retry calls op until it succeeds, fails permanently, or has failed Attempts times in a
// row without fetching progressBytes.
func (c *Client) retry(ctx context.Context, name string, op func(context.Context) (progress int64, err error)) error {
	for failed := 0; ; {
		progress, err := op(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err = plainError(err)
		if !temporary(err) {
			return err
		}
		if failed++; progress >= progressBytes {
			failed = 1
		}
		if failed >= c.options.Attempts {
			return fmt.Errorf("gave up after %d attempts: %w", failed, err)
		}
		pause, ok := c.pause(failed, err)
		if !ok {
			return err
		}
		c.log.WarnContext(ctx, "download failed, retrying", "name", name, "error", err, "failed", failed, "pause", pause)
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// pause returns the wait after the failed-th failure in a row: an exponential backoff with
// jitter, or the time that the server requests. It returns false if that exceeds MaxWait.
func (c *Client) pause(failed int, err error) (d time.Duration, ok bool) {
	d = c.options.MaxBackoff
	if shift := failed - 1; shift < 16 {
		d = min(d, c.options.Backoff<<shift)
	}
	d = d/2 + rand.N(d) //nolint:gosec // jitter, not a secret
	if status, found := errors.AsType[*StatusError](err); found && status.RetryAfter > 0 {
		d = status.RetryAfter
	}
	return d, d <= c.options.MaxWait
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errShort: a body ended before its expected end.
var errShort = errors.New("the connection ended before the transfer was complete")

// temporary reports whether a retry may succeed: after network errors it may; after a
// permanent response, a wrong digest, a rejected certificate or an error of the local disk
// it does not.
func temporary(err error) bool {
	if status, ok := errors.AsType[*StatusError](err); ok {
		return status.temporary()
	}
	if _, ok := errors.AsType[*PlainHTTPError](err); ok {
		return false
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return !dns.IsNotFound
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return false
	}
	if badCertificate(err) {
		return false
	}
	if _, ok := errors.AsType[*StallError](err); ok {
		return true
	}
	if network, ok := errors.AsType[net.Error](err); ok && network.Timeout() {
		return true
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return true
	}
	for _, e := range []error{errShort, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, e) {
			return true
		}
	}
	// net/http returns untyped errors when the server closes a connection during a request.
	text := err.Error()
	return strings.Contains(text, "server closed idle connection") || strings.Contains(text, "transport connection broken") ||
		strings.Contains(text, "malformed HTTP response")
}

func badCertificate(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return true
	}
	_, ok := errors.AsType[x509.HostnameError](err)
	return ok
}

// plainError removes the address from the errors of net/http, because it may contain
// secrets.
func plainError(err error) error {
	e, ok := errors.AsType[*url.Error](err)
	if !ok {
		return err
	}
	if namesAddress(e.Err) {
		return e.Err
	}
	address := "the address"
	if u, perr := url.Parse(e.URL); perr == nil {
		address = display(u)
	}
	advice := ""
	if badCertificate(e.Err) {
		advice = "; if it is right, set its CA in spec.sources.caFile"
	}
	return fmt.Errorf("%s %s: %w%s", strings.ToUpper(e.Op), address, e.Err, advice)
}

// namesAddress reports whether err is an error of this package that contains the address.
func namesAddress(err error) bool {
	if _, ok := errors.AsType[*StatusError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*StallError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*RedirectError](err); ok {
		return true
	}
	_, ok := errors.AsType[*PlainHTTPError](err)
	return ok
}
