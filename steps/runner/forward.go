package runner

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
)

// ErrNoTCP means that a connection can only run commands and cannot forward TCP.
var ErrNoTCP = errors.New("the connection to this host cannot forward TCP")

// Listen opens a port on the host that is forwarded to this process. With port 0 the host
// chooses one. The listener ends with the connection. It is an error if the host does
// not allow forwarding.
func (r *Runner) Listen(ctx context.Context, address string) (net.Listener, error) {
	f, ok := r.conn.(connector.Forwarder)
	if !ok {
		return nil, ErrNoTCP
	}
	return f.Listen(ctx, "tcp", address)
}

// ErrRefused means that a host was reached and nothing listens on the port.
var ErrRefused = errors.New("connection refused")

// ErrNoName means that a host cannot resolve a name.
var ErrNoName = errors.New("the name does not resolve")

// noName are the messages of C libraries and of Go for ErrNoName: an SSH server reports
// only text.
var noName = []string{"Name or service not known", "No address associated with hostname", "Temporary failure in name resolution", "Name does not resolve", "no such host"}

// ErrNoForward means that the host's sshd does not allow TCP forwarding.
var ErrNoForward = errors.New("sshd forwards no connections")

// Dial connects from the host to an address. The error is ErrNoForward if sshd forbids
// forwarding, and ErrNoTCP if the connection cannot forward TCP.
func (r *Runner) Dial(ctx context.Context, address string) (net.Conn, error) {
	f, ok := r.conn.(connector.Forwarder)
	if !ok {
		return nil, ErrNoTCP
	}
	c, err := f.Dial(ctx, "tcp", address)
	var dial *connector.DialError
	if errors.As(err, &dial) && dial.Forbidden {
		return nil, errors.Join(ErrNoForward, err)
	}
	return c, err
}

// Reach is the result of a connection test from a host to an address.
type Reach int

// The results of a connection test.
const (
	Reached   Reach = iota // the connection was accepted or refused
	Unreached              // no answer, or no route
	Untested               // the connection or the host's sshd does not allow the test
)

// Reach tests whether the host can connect to an address within timeout. It sends no
// data. The host resolves names. why is the reason if the connection failed: ErrRefused
// if the address was reached and nothing listens, ErrNoName if the host cannot resolve
// the name.
func (r *Runner) Reach(ctx context.Context, address string, timeout time.Duration) (what Reach, why error) {
	f, ok := r.conn.(connector.Forwarder)
	if !ok {
		return Untested, ErrNoTCP
	}
	try, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := f.Dial(try, "tcp", address)
	var dial *connector.DialError
	switch {
	case err == nil:
		return Reached, c.Close()
	case ctx.Err() != nil:
		return Untested, ctx.Err()
	case errors.Is(err, syscall.ECONNREFUSED) || strings.Contains(err.Error(), "refused"): // an SSH server reports only text
		return Reached, ErrRefused
	case slices.ContainsFunc(noName, func(words string) bool { return strings.Contains(err.Error(), words) }):
		return Unreached, ErrNoName
	case errors.As(err, &dial) && dial.Forbidden:
		return Untested, err
	case try.Err() != nil:
		return Unreached, errors.New("timed out")
	}
	return Unreached, err
}
