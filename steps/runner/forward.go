package runner

import (
	"context"
	"errors"
	"net"
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

// Reach is what came of a try to connect from a host to an address.
type Reach int

// What may come of it.
const (
	Reached   Reach = iota // somebody answered, be it that nobody listens there
	Unreached              // nothing came back, or that there is no way
	Untested               // the host's sshd allows no such try, or the wire carries none
)

// Reach tries to connect from the host to an address, for no longer than timeout,
// and sends nothing. why says what stood against it.
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
		return Reached, nil
	case errors.As(err, &dial) && dial.Forbidden:
		return Untested, err
	case try.Err() != nil:
		return Unreached, errors.New("timed out")
	}
	return Unreached, err
}
