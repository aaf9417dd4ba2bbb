package ssh

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/kubexm/steps/connector"
)

// Conn is the connection to one host. It implements connector.Conn and
// connector.Forwarder.
type Conn struct {
	cfg  Config
	sudo *connector.Sudo
	gate *gate

	dialing chan struct{} // a semaphore: one goroutine connects, the others wait

	mu     sync.Mutex
	client *client
	dialed int // number of connections so far
	closed bool
}

// client is one established connection.
type client struct {
	*ssh.Client
	gone chan struct{} // closed at the end of the connection
	mu   sync.Mutex
	why  error // set before gone is closed, if this side ended the connection
}

// end closes the connection and records the reason for the errors of its commands.
func (c *client) end(why error) {
	c.mu.Lock()
	if c.why == nil {
		c.why = why
	}
	c.mu.Unlock()
	_ = c.Close() // the connection ends even if this fails
}

// cause returns the reason why the connection ended, or err if this side did not end it.
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

// New returns a Conn that connects on first use.
func New(cfg Config) *Conn {
	cfg = cfg.withDefaults()
	return &Conn{
		cfg:     cfg,
		sudo:    &connector.Sudo{Addr: cfg.addr(), User: cfg.User, Password: cfg.SudoPassword},
		gate:    newGate(cfg.MaxSessions),
		dialing: make(chan struct{}, 1),
	}
}

// Addr returns the host's address as host:port.
func (c *Conn) Addr() string { return c.cfg.addr() }

// Root reports whether commands run as root without sudo.
func (c *Conn) Root() bool { return c.cfg.User == "root" }

// Connect establishes the connection if there is none. Exec does the same; callers use
// Connect to report connection errors early.
func (c *Conn) Connect(ctx context.Context) error {
	_, err := c.connect(ctx)
	return err
}

// Close ends the connection and every command on it. It does not close the connection to
// the jump host.
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

// current returns the established connection, or nil.
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

// connect returns the established connection, or establishes one.
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

// errDead is the reason for a connection that watch closed.
var errDead = errors.New("the host stopped responding")
