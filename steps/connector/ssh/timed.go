package ssh

import (
	"io"
	"net"
	"time"
)

// timedListener accepts connections that support read deadlines. Those of
// x/crypto/ssh do not. net/http's server stops its background read by a deadline after
// each request: without one, a client that pipelines requests gets one answer only.
type timedListener struct{ net.Listener }

func (l timedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	r, w := net.Pipe()
	go func() { // ends when either side closes
		_, _ = io.Copy(w, c)
		_ = w.Close() // a pipe's end closes without an error
	}()
	return &timedConn{Conn: c, r: r}, nil
}

// timedConn reads from a pipe into which the connection is copied. Writes go to the
// connection itself and have no deadline.
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
