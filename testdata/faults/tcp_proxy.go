package main

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// tcpProxy is the way to a host, which can be cut, can break the connection with a
// reset, and can go silent, after so many bytes.
type tcpProxy struct {
	listener net.Listener
	to       string
	wg       sync.WaitGroup

	mu    sync.Mutex
	pairs map[*pair]bool
	left  int64 // bytes until it strikes; 0: never
	how   func(*pair)
	past  int64           // bytes so far
	dead  bool            // nobody gets through at all
	heard []time.Duration // how long each connection was silent until kubexm gave it up
}

// pair is one connection and its continuation.
type pair struct {
	near, far *net.TCPConn
	stalled   chan struct{} // closed: nothing goes through any more
	since     time.Time     // when it was
	once      sync.Once
	gone      chan struct{}
}

func newTCPProxy(address, to string) (*tcpProxy, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, err
	}
	c := &tcpProxy{listener: l, to: to, pairs: map[*pair]bool{}}
	c.wg.Go(c.accept)
	return c, nil
}

// port is where kubexm finds the host.
func (c *tcpProxy) port() int {
	addr, ok := c.listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0
	}
	return addr.Port
}

func (c *tcpProxy) close() {
	_ = c.listener.Close()
	c.each(cut)
	c.wg.Wait()
}

func (c *tcpProxy) accept() {
	for {
		near, err := c.listener.Accept()
		if err != nil {
			return
		}
		c.mu.Lock()
		dead := c.dead
		c.mu.Unlock()
		far, err := net.DialTimeout("tcp", c.to, time.Second)
		if err != nil || dead {
			_ = near.Close()
			if err == nil {
				_ = far.Close()
			}
			continue
		}
		p := &pair{stalled: make(chan struct{}), gone: make(chan struct{})}
		p.near, _ = near.(*net.TCPConn)
		p.far, _ = far.(*net.TCPConn)
		c.mu.Lock()
		c.pairs[p] = true
		c.mu.Unlock()
		c.wg.Go(func() { c.copy(p, p.far, p.near) })
		c.wg.Go(func() { c.copy(p, p.near, p.far) })
	}
}

// copy carries one direction; the end of either ends the pair.
func (c *tcpProxy) copy(p *pair, to, from net.Conn) {
	defer func() {
		cut(p)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.pairs, p)
	}()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		for at := 0; at < n; {
			some, how := c.pass(int64(n - at))
			select {
			case <-p.stalled: // what is sent gets nowhere, and nobody is told
				c.silent(p, from)
				return
			default:
			}
			if _, err := to.Write(b[at : at+int(some)]); err != nil {
				return
			}
			at += int(some)
			if how != nil {
				how(p)
			}
		}
		if err != nil {
			select {
			case <-p.stalled:
				c.silent(p, from)
			default:
			}
			return
		}
	}
}

// silent waits for the end of a connection that has stalled, and notes when kubexm gave
// it up: the host says nothing of it.
func (c *tcpProxy) silent(p *pair, from net.Conn) {
	if from == net.Conn(p.near) {
		_, _ = io.Copy(io.Discard, from) // until it is closed, from whichever side
		select {
		case <-p.gone:
		default:
			c.mu.Lock()
			c.heard = append(c.heard, time.Since(p.since))
			c.mu.Unlock()
		}
		return // which ends the other direction
	}
	<-p.gone
}

// noticed gives how long connections were silent until kubexm gave them up, and
// forgets it.
func (c *tcpProxy) noticed() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.heard
	c.heard = nil
	return out
}

// pass counts bytes, and gives how many go through before the proxy strikes.
func (c *tcpProxy) pass(n int64) (int64, func(*pair)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 || n < c.left {
		if c.left > 0 {
			c.left -= n
		}
		c.past += n
		return n, nil
	}
	n = c.left
	c.left = 0
	c.past += n
	return n, c.how
}

// strikeAfter has the proxy do something to the connection whose bytes complete n.
func (c *tcpProxy) strikeAfter(n int64, how func(*pair)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.how, c.past = n, how, 0
}

// carried gives the bytes since the last strikeAfter.
func (c *tcpProxy) carried() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.past
}

// each does something to every connection.
func (c *tcpProxy) each(how func(*pair)) {
	c.mu.Lock()
	var all []*pair
	for p := range c.pairs {
		all = append(all, p)
	}
	c.mu.Unlock()
	for _, p := range all {
		how(p)
	}
}

// unplug lets nobody through, plug lets everybody through again.
func (c *tcpProxy) unplug() { c.setDead(true) }
func (c *tcpProxy) plug()   { c.setDead(false) }

func (c *tcpProxy) setDead(dead bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = dead
}

// cut ends a connection on both sides.
func cut(p *pair) {
	p.once.Do(func() { close(p.gone) })
	_ = p.near.Close()
	_ = p.far.Close()
}

// reset ends it as a host does that knows nothing of it.
func reset(p *pair) {
	_ = p.near.SetLinger(0)
	_ = p.far.SetLinger(0)
	cut(p)
}

// stall keeps it open, and lets nothing through.
func stall(p *pair) {
	select {
	case <-p.stalled:
	default:
		p.since = time.Now()
		close(p.stalled)
	}
}
