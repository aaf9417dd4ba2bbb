package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/kubexm/steps/connector"
)

// dial makes one connection: TCP, host key, login, and the watch over it.
func (c *Conn) dial(ctx context.Context) (*client, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	login, err := newLogin(ctx, c.cfg)
	if err != nil {
		return nil, err
	}
	defer login.close()

	keys, err := newHostKeys(c.cfg)
	if err != nil {
		return nil, err
	}
	for {
		cl, err := c.handshake(ctx, login, keys)
		if err == nil {
			return cl, nil
		}
		// A pinned fingerprint does not tell its kind of key: the server is asked
		// for its others.
		if !keys.another() {
			return nil, err
		}
	}
}

// handshake is dial with one choice of host key algorithms.
func (c *Conn) handshake(ctx context.Context, login *login, keys *hostKeys) (*client, error) {
	raw, err := c.tcp(ctx)
	if err != nil {
		return nil, err
	}
	heard := &listening{Conn: raw}
	heard.touch()
	// The handshake knows no context: when that ends, so does the connection.
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()

	algorithms := ssh.SupportedAlgorithms()
	conn, chans, reqs, err := ssh.NewClientConn(heard, c.cfg.addr(), &ssh.ClientConfig{
		Config:            ssh.Config{KeyExchanges: algorithms.KeyExchanges, Ciphers: algorithms.Ciphers, MACs: algorithms.MACs},
		User:              c.cfg.User,
		Auth:              login.methods(),
		AuthCallback:      login.note,
		HostKeyCallback:   keys.check,
		HostKeyAlgorithms: keys.algorithms(),
		BannerCallback:    func(string) error { return nil },
		ClientVersion:     "SSH-2.0-kubexm",
	})
	if err != nil {
		_ = raw.Close()
		return nil, c.explain(ctx, err, login, keys)
	}
	if !stop() {
		_ = raw.Close()
		return nil, c.unanswered(ctx, context.Cause(ctx))
	}
	cl := &client{Client: ssh.NewClient(conn, chans, reqs), gone: make(chan struct{})}
	go func() {
		_ = cl.Wait() // the reason is told to those whose commands break
		_ = raw.Close()
		close(cl.gone)
	}()
	go watch(cl, heard, c.cfg.Keepalive, c.cfg.DeadAfter)
	return cl, nil
}

// tcp opens the connection below SSH, from here or from the jump host.
func (c *Conn) tcp(ctx context.Context) (net.Conn, error) {
	if c.cfg.Jump == nil {
		raw, err := c.cfg.Dial(ctx, "tcp", c.cfg.addr())
		if err != nil {
			return nil, c.unanswered(ctx, err)
		}
		return raw, nil
	}
	jump := c.cfg.Jump
	cl, err := jump.connect(ctx)
	if err != nil {
		return nil, &connector.JumpError{Jump: jump.Addr(), Addr: c.cfg.addr(), Err: err}
	}
	raw, err := cl.DialContext(ctx, "tcp", c.cfg.addr())
	if err != nil {
		return nil, &connector.JumpError{Jump: jump.Addr(), Addr: c.cfg.addr(), Err: plainRefusal(err), Hint: throughHint(err)}
	}
	return raw, nil
}

// plainRefusal takes the library's words off a refused channel.
func plainRefusal(err error) error {
	var refused *ssh.OpenChannelError
	if errors.As(err, &refused) && refused.Message != "" {
		return errors.New(strings.ToLower(refused.Message))
	}
	return err
}

func throughHint(err error) string {
	var refused *ssh.OpenChannelError
	if errors.As(err, &refused) && refused.Reason == ssh.Prohibited {
		return "allow it there: AllowTcpForwarding yes (or local) in sshd_config, and no PermitOpen that leaves the address out"
	}
	return "check on the jump host that the address and port answer: `nc -vz ADDRESS PORT`"
}

// unanswered says why an address did not answer.
func (c *Conn) unanswered(ctx context.Context, err error) error {
	e := &connector.DialError{Addr: c.cfg.addr(), Err: err}
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		e.Err, e.Hint = fmt.Errorf("no address for %s", dns.Name), "set address to an IP address in the config, or make the name known on this machine"
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Err, e.Hint = errors.New("connection refused"), "check that sshd runs on the host and listens on this port (set port in the config if it is another)"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		e.Err, e.Hint = errors.New("no route to host"), "check the address, and that this machine has a route to it; a jumpHost may be needed"
	case isTimeout(ctx, err):
		e.Err = fmt.Errorf("no answer within %s", c.cfg.Timeout)
		e.Hint = "check the address and the firewalls on the way; a slow machine needs a longer connectionTimeout"
	case errors.Is(err, context.Canceled):
		return err
	default:
		e.Hint = "check address and port in the config"
	}
	return e
}

func isTimeout(ctx context.Context, err error) bool {
	var t net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) ||
		errors.As(err, &t) && t.Timeout()
}

// explain turns the library's handshake errors into ours.
func (c *Conn) explain(ctx context.Context, err error, login *login, keys *hostKeys) error {
	if keys.refused != nil {
		return keys.refused
	}
	if keys.failed != nil {
		return keys.failed
	}
	if login.err != nil {
		return login.err
	}
	var missing *ssh.AlgorithmNegotiationError
	switch {
	case errors.As(err, &missing):
		return &connector.DialError{
			Addr: c.cfg.addr(), Err: fmt.Errorf("no common algorithm: %w", err),
			Hint: "let sshd offer a current algorithm (ed25519, ecdsa or rsa-sha2 host keys; aes-gcm or chacha20)",
		}
	case ctx.Err() != nil:
		return c.unanswered(ctx, context.Cause(ctx))
	case login.began:
		return &connector.AuthError{
			Addr: c.cfg.addr(), User: c.cfg.User, Tried: login.tried, Accepts: login.accepts, Err: err,
		}
	}
	return &connector.DialError{
		Addr: c.cfg.addr(), Err: fmt.Errorf("no SSH server that speaks to us: %w", err),
		Hint: "check that this port is sshd's; MaxStartups in sshd_config and hosts.deny end connections early too",
	}
}

// listening remembers when the peer was last heard of.
type listening struct {
	net.Conn
	last atomic.Int64
}

func (l *listening) touch() { l.last.Store(time.Now().UnixNano()) }

func (l *listening) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if n > 0 {
		l.touch()
	}
	return n, err
}

func (l *listening) silence() time.Duration { return time.Since(time.Unix(0, l.last.Load())) }

// watch asks the peer for a sign of life now and then, and ends the connection
// when there was none for too long. Any byte counts: on a slow line the answer
// may stand in a queue behind output.
func watch(cl *client, heard *listening, every, deadAfter time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var asked atomic.Bool
	for {
		select {
		case <-cl.gone:
			return
		case <-tick.C:
		}
		silent := heard.silence()
		if silent >= deadAfter {
			cl.end(fmt.Errorf("%w: nothing was heard for %s", errDead, silent.Round(time.Second)))
			return
		}
		// Sending may block on a dead line, so it does not hold up the watch.
		if silent >= every/2 && asked.CompareAndSwap(false, true) {
			go func() {
				_, _, _ = cl.SendRequest("keepalive@openssh.com", true, nil) // an answer of any kind is one
				asked.Store(false)
			}()
		}
	}
}
