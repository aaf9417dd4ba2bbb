package ssh

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/kubexm/steps/connector"
)

// Conn is the connection to one machine. It is a connector.Conn and a
// connector.Forwarder.
type Conn struct {
	cfg  Config
	sudo *connector.Sudo
	gate *gate

	dialing chan struct{} // held while a connection is made: the others wait for that one

	mu     sync.Mutex
	client *client
	dialed int // connections made so far
	closed bool
}

// client is one connection as long as it lives.
type client struct {
	*ssh.Client
	gone chan struct{} // closed when the connection ended
	mu   sync.Mutex
	why  error // set before gone is closed where this side ended it
}

// end closes the connection and keeps the reason for those whose commands break.
func (c *client) end(why error) {
	c.mu.Lock()
	if c.why == nil {
		c.why = why
	}
	c.mu.Unlock()
	_ = c.Close() // it ends either way
}

// cause says why the connection ended; err is what the caller saw of it.
func (c *client) cause(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why != nil {
		return c.why
	}
	return err
}

func (c *client) alive() bool {
	select {
	case <-c.gone:
		return false
	default:
		return true
	}
}

// New gives a Conn that connects when it is first used.
func New(cfg Config) *Conn {
	cfg = cfg.withDefaults()
	return &Conn{
		cfg:     cfg,
		sudo:    &connector.Sudo{Addr: cfg.addr(), User: cfg.User, Password: cfg.SudoPassword},
		gate:    newGate(cfg.MaxSessions),
		dialing: make(chan struct{}, 1),
	}
}

// Addr gives the machine's host:port.
func (c *Conn) Addr() string { return c.cfg.addr() }

// Root tells whether commands are root's without sudo.
func (c *Conn) Root() bool { return c.cfg.User == "root" }

// Connect makes the connection if there is none. Exec does the same; this is for
// telling early what is wrong.
func (c *Conn) Connect(ctx context.Context) error {
	_, err := c.connect(ctx)
	return err
}

// Close ends the connection and every command on it. The jump host's connection
// stays.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.client != nil {
		c.client.end(connector.ErrClosed)
		c.client = nil
	}
	return nil
}

// current gives the living connection, or nil.
func (c *Conn) current() (*client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, connector.ErrClosed
	}
	if c.client != nil && c.client.alive() {
		return c.client, nil
	}
	return nil, nil
}

// connect gives the living connection, and makes one where there is none.
func (c *Conn) connect(ctx context.Context) (*client, error) {
	if cl, err := c.current(); cl != nil || err != nil {
		return cl, err
	}
	select {
	case c.dialing <- struct{}{}:
		defer func() { <-c.dialing }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if cl, err := c.current(); cl != nil || err != nil {
		return cl, err
	}
	cl, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		cl.end(connector.ErrClosed)
		return nil, connector.ErrClosed
	}
	if c.dialed > 0 {
		c.cfg.Log.InfoContext(ctx, "connected again", "address", c.cfg.addr())
	}
	c.client = cl
	c.dialed++
	return cl, nil
}

// errDead is why a connection ended that the watch closed.
var errDead = errors.New("the host went silent")
