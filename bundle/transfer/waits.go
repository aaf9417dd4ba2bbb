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

// The waits that a Waits leaves at zero. A registry hashes a large blob before it
// answers, which takes minutes on slow disks.
const (
	defaultConnect = 30 * time.Second
	defaultHeader  = 5 * time.Minute
	defaultIdle    = 5 * time.Minute
)

// Waits bound how long a peer may say nothing. A zero field is its default.
type Waits struct {
	Connect time.Duration // for a connection, and once more for its TLS handshake; 30 s
	Header  time.Duration // for the header of an answer, once the request is sent; 5 min
	Idle    time.Duration // between two bytes of a request or an answer; 5 min
}

// Dial connects to an address, as net.Dialer.DialContext does.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// Transport gives a transport for a registry whose connections dial makes (nil: this
// machine's own network) and that keeps nobody waiting longer than w allows. The
// caller sets TLSClientConfig and how many connections are kept.
func (w Waits) Transport(dial Dial) *http.Transport {
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

// idleConn is a connection that ends when no byte went either way for some time. It
// needs no deadlines: connections through SSH have none.
type idleConn struct {
	net.Conn
	idle    time.Duration
	last    atomic.Int64 // when a byte went, in ns since 1970
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
	c.timer = time.AfterFunc(idle, c.look)
	return c
}

func (c *idleConn) touch(n int) {
	if n > 0 {
		c.last.Store(time.Now().UnixNano())
	}
}

// look ends the connection where nothing went for long enough.
func (c *idleConn) look() {
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
	_ = c.Conn.Close() // reads and writes that are under way fail
}

func (c *idleConn) because(err error) error {
	if err != nil && c.stalled.Load() {
		return fmt.Errorf("nothing was sent or received for %s: %w", c.idle, err)
	}
	return err
}

// Read reads, and notes that the peer lives.
func (c *idleConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.touch(n)
	return n, c.because(err)
}

// Write writes, and notes that the peer lives.
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

// Pages gives a client for one listing of a registry, which comes in pages: after
// most requests it fails. A registry can have each page name a further one for ever.
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
