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

// transport is under every request of a Client. It bounds how many run against
// one host, refuses plain http without leave, gives up on a source that stalls,
// and turns the answers that mean "not now" into errors, so that retrying is
// decided in one place, whoever made the request.
type transport struct {
	inner     http.RoundTripper
	userAgent string
	parallel  int
	stall     time.Duration

	mu    sync.Mutex
	slots map[string]chan struct{} // by host
}

func newTransport(o Options, tlsConfig *tls.Config) *transport {
	// HTTP/1.1 alone: with HTTP/2 all downloads from one host would share one
	// connection and its flow control, which is slower, and one cut would end
	// them all.
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &transport{
		inner: &http.Transport{
			Proxy:               http.ProxyFromEnvironment, // never for loopback
			DialContext:         (&net.Dialer{Timeout: 15 * time.Second}).DialContext,
			TLSClientConfig:     tlsConfig,
			TLSHandshakeTimeout: 15 * time.Second,
			Protocols:           protocols,
			// A digest is over the bytes as published: nothing is to be unpacked on the way.
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

// enter waits until fewer than parallel requests run against host.
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

// stallBytes is how much has to come within the stall time: a source that drips
// below that would hold a build for days.
const stallBytes = 1024

// watched is the body of an answer. Only time spent waiting for the source
// counts: a slow disk of ours is not its stall.
type watched struct {
	body    io.ReadCloser
	ctx     context.Context //nolint:containedctx // the request's own, ended by finish
	cancel  context.CancelCauseFunc
	timer   *time.Timer
	stall   time.Duration
	left    time.Duration // of stall
	since   int64         // bytes since left was full
	address string
	release func()
	once    sync.Once
}

func (w *watched) expire() { w.cancel(&StallError{Address: w.address, Idle: w.stall}) }

// Read reads from the source, for as long as it does not stall.
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
	if cause := w.cause(err); cause != err { //nolint:errorlint // the same one or another
		return n, cause
	}
	return n, fmt.Errorf("read %s: %w", w.address, err)
}

// Close ends the request and lets the next one to the host begin.
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

// cause tells a stall from the cancellation that it looks like.
func (w *watched) cause(err error) error {
	var stall *StallError
	if errors.As(context.Cause(w.ctx), &stall) {
		return stall
	}
	return err
}

// maxRedirects is net/http's own limit, which a CheckRedirect has to keep itself.
const maxRedirects = 10

// checkRedirect follows redirects, but not from https down to http unless the
// address asked for may be asked over plain http; the transport refuses that
// too, this one says it better.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return &RedirectError{Address: display(via[0].URL), Next: display(req.URL)}
	}
	if req.URL.Scheme != "https" && !plainHTTPAllowed(req.Context()) {
		return fmt.Errorf("%s redirects to plain http: %w", display(via[len(via)-1].URL), &PlainHTTPError{Address: display(req.URL)})
	}
	return nil
}

// messageBytes is how much of a refusal's text is read and shown.
const messageBytes = 300

// statusError describes an answer other than the one asked for. It reads some
// of the body and leaves closing to the caller.
func statusError(resp *http.Response) *StatusError {
	e := &StatusError{Method: resp.Request.Method, Address: display(resp.Request.URL), Code: resp.StatusCode}
	if kind := resp.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/html") {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, messageBytes)) // as far as it came
		e.Message = oneLine(string(text))
	}
	e.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), time.Now())
	return e
}

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(s string, now time.Time) time.Duration {
	if n, err := strconv.Atoi(s); err == nil {
		return time.Duration(max(n, 0)) * time.Second
	}
	if at, err := http.ParseTime(s); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// oneLine makes a stranger's text safe for a terminal.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) || r == '\ufffd' {
			return ' '
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// display gives an address without what is secret in it: credentials, and the
// query, which holds the signature of a signed address.
func display(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return shown.String()
}
