package registry

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// longestWait is how long a registry may ask to be left alone.
const longestWait = 2 * time.Minute

// pace bounds how many requests are under way to one registry. A registry that
// answers "too many" or "not now" gets half as many, and none before the time it
// asks for; each full round of good answers lets one more through again, up to
// as many as it began with.
type pace struct {
	base http.RoundTripper
	most int

	mu     sync.Mutex
	limit  int
	now    int           // under way
	good   int           // good answers since limit last changed
	before time.Time     // nothing is sent before
	wake   chan struct{} // closed when there may be room
}

func newPace(base http.RoundTripper, most int) *pace {
	if base == nil {
		base = http.DefaultTransport //nolint:forbidigo // what a client without a transport has
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

// enter waits for room, or for ctx to end.
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
			rest = longestWait // somebody leaves before
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

// leave learns from an answer, nil where none came.
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
