package runner

import (
	"context"
	"errors"
	"net"

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
