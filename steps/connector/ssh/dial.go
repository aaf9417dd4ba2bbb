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

// dial establishes one connection: TCP, host key, login, keepalives.
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
		// A pinned fingerprint does not contain the type of the key: request the server's
		// keys of other types.
		if !keys.another() {
			return nil, err
		}
	}
}

// handshake is dial with one list of host key algorithms.
func (c *Conn) handshake(ctx context.Context, login *login, keys *hostKeys) (*client, error) {
	raw, err := c.tcp(ctx)
	if err != nil {
		return nil, err
	}
	activity := &activityConn{Conn: raw}
	activity.touch()
	// The library's handshake takes no context: close the connection at the context's end.
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()

	algorithms := ssh.SupportedAlgorithms()
	conn, chans, reqs, err := ssh.NewClientConn(activity, c.cfg.addr(), &ssh.ClientConfig{
		Config:            ssh.Config{KeyExchanges: algorithms.KeyExchanges, Ciphers: algorithms.Ciphers, MACs: algorithms.MACs},
		User:              c.cfg.User,
		Auth:              login.methods(),
		AuthCallback:      login.recordAccepted,
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
		_ = cl.Wait() // broken commands return the reason
		_ = raw.Close()
		close(cl.gone)
	}()
	go watch(cl, activity, c.cfg.Keepalive, c.cfg.DeadAfter)
	return cl, nil
}

// tcp opens the TCP connection, from this machine or through the jump host.
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

// plainRefusal returns the server's message for a refused channel, without the library's
// prefix.
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
		return "allow it on the jump host: set AllowTcpForwarding yes (or local) in sshd_config; if PermitOpen is set, add the address to it"
	}
	return "check on the jump host that the address and port are reachable: `nc -vz ADDRESS PORT`"
}

// unanswered returns the *DialError for an address that could not be connected to.
func (c *Conn) unanswered(ctx context.Context, err error) error {
	e := &connector.DialError{Addr: c.cfg.addr(), Err: err}
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		e.Err, e.Hint = fmt.Errorf("cannot resolve %s", dns.Name), "set address to an IP address in the config, or add the name to DNS or /etc/hosts on this machine"
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Err, e.Hint = errors.New("connection refused"), "check that sshd runs on the host and listens on this port (set port in the config if it is another)"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		e.Err, e.Hint = errors.New("no route to host"), "check the address, and that this machine has a route to it; a jumpHost may be needed"
	case isTimeout(ctx, err):
		e.Err = fmt.Errorf("no answer within %s", c.cfg.Timeout)
		e.Hint = "check the address and the firewalls in between; for a slow host, increase connectionTimeout"
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

// explain converts the library's handshake errors to the error types of package connector.
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
		Addr: c.cfg.addr(), Err: fmt.Errorf("SSH handshake failed: %w", err),
		Hint: "check that sshd listens on this port; MaxStartups in sshd_config and hosts.deny can also close connections early",
	}
}

// activityConn records the time of the last received data.
type activityConn struct {
	net.Conn
	last atomic.Int64
}

func (l *activityConn) touch() { l.last.Store(time.Now().UnixNano()) }

func (l *activityConn) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if n > 0 {
		l.touch()
	}
	return n, err
}

func (l *activityConn) silence() time.Duration { return time.Since(time.Unix(0, l.last.Load())) }

// watch sends keepalives and ends the connection if no data was received for deadAfter.
// Any byte counts, not only keepalive answers: on a slow line an answer may be queued
// behind output.
func watch(cl *client, activity *activityConn, every, deadAfter time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var pending atomic.Bool
	for {
		select {
		case <-cl.gone:
			return
		case <-tick.C:
		}
		silent := activity.silence()
		if silent >= deadAfter {
			cl.end(fmt.Errorf("%w: no data received for %s", errDead, silent.Round(time.Second)))
			return
		}
		// Sending may block on a dead connection, so it must not block the loop.
		if silent >= every/2 && pending.CompareAndSwap(false, true) {
			go func() {
				_, _, _ = cl.SendRequest("keepalive@openssh.com", true, nil) // a rejection is an answer, too
				pending.Store(false)
			}()
		}
	}
}
