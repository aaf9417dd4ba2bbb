package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/kubexm/steps/connector"
)

// Dial connects from the host to an address; see connector.Forwarder.
func (c *Conn) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	cl, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := cl.DialContext(ctx, network, address)
	if err != nil {
		return nil, c.forwardError("dial "+address, err)
	}
	return conn, nil
}

// Listen accepts connections on the host; see connector.Forwarder.
func (c *Conn) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	cl, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	l, err := cl.Listen(network, address)
	if err != nil {
		return nil, c.forwardError("listen on "+address, err)
	}
	return timedListener{l}, nil
}

func (c *Conn) forwardError(what string, err error) error {
	hint := "check on the host that the address answers"
	var refused *ssh.OpenChannelError
	forbidden := errors.As(err, &refused) && refused.Reason == ssh.Prohibited
	switch {
	case forbidden:
		hint = "allow it on the host: AllowTcpForwarding yes in sshd_config"
	case refused == nil:
		hint = "the address may be in use on the host, or AllowTcpForwarding in its sshd_config forbids it"
	}
	return &connector.DialError{Addr: c.cfg.addr(), Err: fmt.Errorf("%s from the host: %w", what, plainRefusal(err)), Hint: hint, Forbidden: forbidden}
}
