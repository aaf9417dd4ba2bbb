package registry

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// longestWait is the maximum delay that is accepted from a registry's Retry-After header.
const longestWait = 2 * time.Minute

// pace limits the number of concurrent requests to one registry. After a response 429 or 503
// the limit is halved, and no request is sent before the time in Retry-After. After each full
// round of successful responses the limit is increased by one, up to the initial limit.
type pace struct {
	base http.RoundTripper
	most int

	mu     sync.Mutex
	limit  int
	now    int           // current requests
	good   int           // successful responses since limit last changed
	before time.Time     // no request is sent before
	wake   chan struct{} // closed when a request may be sent
}

func newPace(base http.RoundTripper, most int) *pace {
	if base == nil {
		base = http.DefaultTransport //nolint:forbidigo // the default of http.Client
	}
	most = max(most, 1)
	return &pace{base: base, most: most, limit: most, wake: make(chan struct{})}
}

// RoundTrip implements http.RoundTripper.
func (p *pace) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := p.enter(req.Context()); err != nil {
		return nil, err
	}
	resp, err := p.base.RoundTrip(req)
	p.leave(resp)
	return resp, err
}

// enter waits until a request may be sent, or until ctx ends.
func (p *pace) enter(ctx context.Context) error {
	for {
		p.mu.Lock()
		rest := time.Until(p.before)
		if rest <= 0 && p.now < p.limit {
			p.now++
			p.mu.Unlock()
			return nil
		}
		wake := p.wake
		p.mu.Unlock()
		if rest <= 0 {
			rest = longestWait // another request ends before
		}
		t := time.NewTimer(rest)
		select {
		case <-t.C:
		case <-wake:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
		t.Stop()
	}
}

// leave adjusts the limit to a response; nil means that there was none.
func (p *pace) leave(resp *http.Response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now--
	switch {
	case resp == nil:
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable:
		p.limit, p.good = max(p.limit/2, 1), 0
		if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 {
			p.before = time.Now().Add(min(time.Duration(n)*time.Second, longestWait))
		}
	default:
		if p.good++; p.good >= p.limit && p.limit < p.most {
			p.limit, p.good = p.limit+1, 0
		}
	}
	close(p.wake)
	p.wake = make(chan struct{})
}
