package sshtest

import (
	"net"
	"sync"
)

// link is a connection that can be held.
type link struct {
	net.Conn
	mu     sync.Mutex
	free   chan struct{} // closed while the link is not held
	ended  chan struct{}
	ending sync.Once
}

func newLink(raw net.Conn) *link {
	l := &link{Conn: raw, free: make(chan struct{}), ended: make(chan struct{})}
	close(l.free)
	return l
}

func (l *link) hold(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.free:
		if on {
			l.free = make(chan struct{})
		}
	default:
		if !on {
			close(l.free)
		}
	}
}

func (l *link) wait() {
	l.mu.Lock()
	free := l.free
	l.mu.Unlock()
	select {
	case <-free:
	case <-l.ended:
	}
}

func (l *link) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	l.wait()
	return n, err
}

func (l *link) Write(b []byte) (int, error) {
	l.wait()
	return l.Conn.Write(b)
}

func (l *link) Close() error {
	l.ending.Do(func() { close(l.ended) })
	return l.Conn.Close()
}
