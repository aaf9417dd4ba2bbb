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

// ErrNoTCP says that a connection carries commands alone.
var ErrNoTCP = errors.New("the connection to this host carries no TCP")

// Listen opens a port on the host that leads here. Port 0 lets the host choose. The
// listener ends with the connection, and there may be hosts that allow none.
func (r *Runner) Listen(ctx context.Context, address string) (net.Listener, error) {
	f, ok := r.conn.(connector.Forwarder)
	if !ok {
		return nil, ErrNoTCP
	}
	return f.Listen(ctx, "tcp", address)
}

// ErrRefused says that an address answered, and that nobody listens on the port.
var ErrRefused = errors.New("connection refused")

// ErrNoName says that a host knows no address of a name.
var ErrNoName = errors.New("the name has no address")

// noName are the words of C libraries and of Go for that: of a far side there is
// nothing else.
var noName = []string{"Name or service not known", "No address associated with hostname", "Temporary failure in name resolution", "Name does not resolve", "no such host"}

// ErrNoForward says that the host's sshd forwards no connections.
var ErrNoForward = errors.New("sshd forwards no connections")

// Dial connects from the host to an address. It fails with ErrNoForward where sshd
// forbids that, and with ErrNoTCP where the connection carries commands alone.
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

// Reach is what came of a try to connect from a host to an address.
type Reach int

// What may come of it.
const (
	Reached   Reach = iota // somebody answered, be it that nobody listens there
	Unreached              // nothing came back, or that there is no way
	Untested               // the host's sshd allows no such try, or the wire carries none
)

// Reach tries to connect from the host to an address, for no longer than timeout,
// and sends nothing. A name is looked up by the host. why says what stood against it;
// it is ErrRefused where the host was reached and nobody listens, and ErrNoName where
// the name has no address there.
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
	case errors.Is(err, syscall.ECONNREFUSED) || strings.Contains(err.Error(), "refused"): // of a far side there are words alone
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
