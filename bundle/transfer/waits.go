package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"oras.land/oras-go/v2/registry/remote"
)

// Default timeouts. A registry hashes a large blob before it responds, which takes minutes
// on slow disks.
const (
	defaultConnect = 30 * time.Second
	defaultHeader  = 5 * time.Minute
	defaultIdle    = 5 * time.Minute
)

// Timeouts are the timeouts of an exchange with a registry. A zero field has its default
// value.
type Timeouts struct {
	Connect time.Duration // for a connection, and again for its TLS handshake; default 30 s
	Header  time.Duration // for the response header after the request was sent; default 5 min
	Idle    time.Duration // between two bytes of a request or a response; default 5 min
}

// Dial connects to an address, as net.Dialer.DialContext does.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// Transport returns a transport for a registry with w's timeouts. dial creates the
// connections; nil uses the network of this machine. The caller sets TLSClientConfig and
// the number of idle connections.
func (w Timeouts) Transport(dial Dial) *http.Transport {
	connect, idle := cmp.Or(w.Connect, defaultConnect), cmp.Or(w.Idle, defaultIdle)
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			short, cancel := context.WithTimeoutCause(ctx, connect, fmt.Errorf("no connection to %s within %s", address, connect))
			defer cancel()
			conn, err := dial(short, network, address)
			if err != nil {
				if cause := context.Cause(short); ctx.Err() == nil && cause != nil {
					err = errors.Join(cause, err)
				}
				return nil, err
			}
			return newIdleConn(conn, idle), nil
		},
		TLSHandshakeTimeout:   connect,
		ResponseHeaderTimeout: cmp.Or(w.Header, defaultHeader),
		IdleConnTimeout:       90 * time.Second,
	}
}

// idleConn is a connection that closes itself after no byte was transferred for some time.
// It does not use deadlines, because connections through SSH do not support them.
type idleConn struct {
	net.Conn
	idle    time.Duration
	last    atomic.Int64 // time of the last transferred byte, in ns since 1970
	stalled atomic.Bool

	mu     sync.Mutex
	timer  *time.Timer
	closed bool
}

func newIdleConn(conn net.Conn, idle time.Duration) *idleConn {
	c := &idleConn{Conn: conn, idle: idle}
	c.touch(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer = time.AfterFunc(idle, c.checkIdle)
	return c
}

func (c *idleConn) touch(n int) {
	if n > 0 {
		c.last.Store(time.Now().UnixNano())
	}
}

// checkIdle closes the connection if nothing was transferred for the idle time.
func (c *idleConn) checkIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	if left := c.idle - time.Since(time.Unix(0, c.last.Load())); left > 0 {
		c.timer.Reset(left)
		return
	}
	c.stalled.Store(true)
	_ = c.Conn.Close() // pending reads and writes fail
}

func (c *idleConn) because(err error) error {
	if err != nil && c.stalled.Load() {
		return fmt.Errorf("nothing was sent or received for %s: %w", c.idle, err)
	}
	return err
}

// Read implements net.Conn and records the activity.
func (c *idleConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.touch(n)
	return n, c.because(err)
}

// Write implements net.Conn and records the activity.
func (c *idleConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.touch(n)
	return n, c.because(err)
}

// Close closes the connection.
func (c *idleConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.timer.Stop()
	return c.Conn.Close()
}

// Pages returns a client for one paginated listing of a registry that fails after most
// requests. A registry can otherwise return a link to a next page forever.
func Pages(client remote.Client, most int64) remote.Client {
	p := &pages{client: client, most: most}
	p.left.Store(most)
	return p
}

type pages struct {
	client remote.Client
	most   int64
	left   atomic.Int64
}

// Do implements remote.Client.
func (p *pages) Do(req *http.Request) (*http.Response, error) {
	if p.left.Add(-1) < 0 {
		return nil, fmt.Errorf("%s has more than %d pages", req.URL.Path, p.most)
	}
	return p.client.Do(req)
}
