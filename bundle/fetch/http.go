package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// transport sends every request of a Client. It limits the concurrent requests per host,
// refuses plain http that is not allowed, and cancels requests to sources that stall. It
// converts responses that mean "try later" into errors, so that one place decides about
// retries.
type transport struct {
	inner     http.RoundTripper
	userAgent string
	parallel  int
	stall     time.Duration

	mu    sync.Mutex
	slots map[string]chan struct{} // by host
}

func newTransport(o Options, tlsConfig *tls.Config) *transport {
	// HTTP/1.1 only: with HTTP/2 all downloads from one host would share one connection and
	// its flow control, which is slower, and one interruption would end them all.
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &transport{
		inner: &http.Transport{
			Proxy:               http.ProxyFromEnvironment, // never for loopback
			DialContext:         (&net.Dialer{Timeout: 15 * time.Second}).DialContext,
			TLSClientConfig:     tlsConfig,
			TLSHandshakeTimeout: 15 * time.Second,
			Protocols:           protocols,
			// A digest is of the published bytes: nothing may be decompressed in transit.
			DisableCompression:  true,
			MaxIdleConnsPerHost: o.Parallel,
			IdleConnTimeout:     90 * time.Second,
			ReadBufferSize:      bufferSize,
		},
		userAgent: o.UserAgent,
		parallel:  o.Parallel,
		stall:     o.Stall,
		slots:     map[string]chan struct{}{},
	}
}

// RoundTrip sends one request.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" && (req.URL.Scheme != "http" || !plainHTTPAllowed(req.Context())) {
		return nil, &PlainHTTPError{Address: display(req.URL)}
	}
	slot, err := t.enter(req.Context(), req.URL.Host)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	w := &watched{release: slot, cancel: cancel, stall: t.stall, left: t.stall, address: display(req.URL), ctx: ctx}
	w.timer = time.AfterFunc(t.stall, w.expire)
	req = req.Clone(ctx)
	req.Header.Set("User-Agent", t.userAgent)
	resp, err := t.inner.RoundTrip(req)
	w.timer.Stop()
	if err != nil {
		err = w.cause(err)
		w.finish()
		return nil, err
	}
	w.body = resp.Body
	resp.Body = w
	if e := (&StatusError{Code: resp.StatusCode}); e.temporary() {
		err := statusError(resp)
		_ = resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// enter waits until fewer than parallel requests to host are running.
func (t *transport) enter(ctx context.Context, host string) (leave func(), err error) {
	t.mu.Lock()
	slot := t.slots[host]
	if slot == nil {
		slot = make(chan struct{}, t.parallel)
		t.slots[host] = slot
	}
	t.mu.Unlock()
	select {
	case slot <- struct{}{}:
		return func() { <-slot }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// stallBytes is the minimum to receive within the stall time: a slower source would block a
// build for days.
const stallBytes = 1024

// watched is the body of a response. Only time spent waiting for the source counts towards
// a stall; time for the local disk does not.
type watched struct {
	body    io.ReadCloser
	ctx     context.Context //nolint:containedctx // the request's own, ended by finish
	cancel  context.CancelCauseFunc
	timer   *time.Timer
	stall   time.Duration
	left    time.Duration // remaining part of stall
	since   int64         // bytes received since left was reset
	address string
	release func()
	once    sync.Once
}

func (w *watched) expire() { w.cancel(&StallError{Address: w.address, Idle: w.stall}) }

// Read reads from the source until it stalls.
func (w *watched) Read(p []byte) (int, error) {
	began := time.Now()
	w.timer.Reset(w.left)
	n, err := w.body.Read(p)
	w.timer.Stop()
	w.left = max(w.left-time.Since(began), 0)
	if w.since += int64(n); w.since >= stallBytes {
		w.left, w.since = w.stall, 0
	}
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	if cause := w.cause(err); cause != err { //nolint:errorlint // compares identity
		return n, cause
	}
	return n, fmt.Errorf("read %s: %w", w.address, err)
}

// Close ends the request and releases its slot for the host.
func (w *watched) Close() error {
	err := w.body.Close()
	w.finish()
	return err
}

func (w *watched) finish() {
	w.once.Do(func() {
		w.timer.Stop()
		w.cancel(nil)
		w.release()
	})
}

// cause returns the StallError behind a cancellation, or err.
func (w *watched) cause(err error) error {
	var stall *StallError
	if errors.As(context.Cause(w.ctx), &stall) {
		return stall
	}
	return err
}

// maxRedirects is net/http's own limit, which a CheckRedirect function must enforce itself.
const maxRedirects = 10

// checkRedirect follows redirects, but from https to http only if plain http is allowed for
// the requested address. The transport refuses that too, but with a less precise error.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return &RedirectError{Address: display(via[0].URL), Next: display(req.URL)}
	}
	if req.URL.Scheme != "https" && !plainHTTPAllowed(req.Context()) {
		return fmt.Errorf("%s redirects to plain http: %w", display(via[len(via)-1].URL), &PlainHTTPError{Address: display(req.URL)})
	}
	return nil
}

// messageBytes is the maximum of an error response's text that is read and shown.
const messageBytes = 300

// statusError describes a response with an unexpected status. It reads some of the body and
// leaves closing it to the caller.
func statusError(resp *http.Response) *StatusError {
	e := &StatusError{Method: resp.Request.Method, Address: display(resp.Request.URL), Code: resp.StatusCode}
	if kind := resp.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/html") {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, messageBytes)) // a partial text is good enough
		e.Message = oneLine(string(text))
	}
	e.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), time.Now())
	return e
}

// retryAfter parses the Retry-After header: seconds, or a date.
func retryAfter(s string, now time.Time) time.Duration {
	if n, err := strconv.Atoi(s); err == nil {
		return time.Duration(max(n, 0)) * time.Second
	}
	if at, err := http.ParseTime(s); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// oneLine returns untrusted text as one line that is safe to print on a terminal.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) || r == '\ufffd' {
			return ' '
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// display returns an address without secrets: without credentials, and without the query,
// which may contain a signature.
func display(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return shown.String()
}
