package ssh

import (
	"io"
	"net"
	"time"
)

// timedListener gives connections that know deadlines for reading, which those of
// x/crypto/ssh do not. net/http's server needs them: between two requests it ends its
// own read that way, and never answers a client that has sent both at once without.
type timedListener struct{ net.Listener }

func (l timedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	r, w := net.Pipe()
	go func() { // until either end closes
		_, _ = io.Copy(w, c)
		_ = w.Close() // a pipe's end closes without an error
	}()
	return &timedConn{Conn: c, r: r}, nil
}

// timedConn reads through a pipe that the connection is copied into.
type timedConn struct {
	net.Conn
	r net.Conn
}

func (c *timedConn) Read(b []byte) (int, error)        { return c.r.Read(b) }
func (c *timedConn) SetReadDeadline(t time.Time) error { return c.r.SetReadDeadline(t) }

func (c *timedConn) Close() error {
	_ = c.r.Close()
	return c.Conn.Close()
}
