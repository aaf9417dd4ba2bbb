package conntest

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"github.com/mensylisir/kubexm/steps/connector"
)

// forwards are the ports on a Sim that lead back through its wire. They have a
// lock of their own: what runs on the host uses them while the host is locked.
type forwards struct {
	mu        sync.Mutex
	forbidden bool
	last      int      // port
	lost      []string // addresses that nothing comes back from
	unknown   []string // names that have no address
	answers   map[string]func() net.Conn
	open      map[string]*forward
}

// ForbidForwarding makes the host's sshd reject TCP forwarding.
func (s *Sim) ForbidForwarding() {
	s.forwards.mu.Lock()
	defer s.forwards.mu.Unlock()
	s.forwards.forbidden = true
}

// DropConnectionsTo makes connections from the host to addresses ("192.0.2.21:10250") time out.
func (s *Sim) DropConnectionsTo(addresses ...string) {
	s.forwards.mu.Lock()
	defer s.forwards.mu.Unlock()
	s.forwards.lost = append(s.forwards.lost, addresses...)
}

// DisableDNS makes the host unable to resolve names.
func (s *Sim) DisableDNS(names ...string) {
	s.forwards.mu.Lock()
	defer s.forwards.mu.Unlock()
	s.forwards.unknown = append(s.forwards.unknown, names...)
}

// AddListener adds a listener at an address: connections to it are the results of open.
func (s *Sim) AddListener(address string, open func() net.Conn) {
	s.forwards.mu.Lock()
	defer s.forwards.mu.Unlock()
	if s.forwards.answers == nil {
		s.forwards.answers = map[string]func() net.Conn{}
	}
	s.forwards.answers[address] = open
}

// Dial connects to a listener of AddListener; see connector.Forwarder.
func (s *Sim) Dial(_ context.Context, network, address string) (net.Conn, error) {
	s.forwards.mu.Lock()
	forbidden, lost := s.forwards.forbidden, slices.Contains(s.forwards.lost, address)
	open := s.forwards.answers[address]
	name, _, _ := net.SplitHostPort(address)
	unknown := slices.Contains(s.forwards.unknown, name)
	s.forwards.mu.Unlock()
	switch {
	case forbidden:
		return nil, &connector.DialError{Addr: "sim", Err: fmt.Errorf("dial %s from the host: open failed", address), Hint: "allow it", Forbidden: true}
	case unknown:
		return nil, &connector.DialError{Addr: "sim", Err: fmt.Errorf("dial %s from the host: Name or service not known", address)}
	case lost:
		return nil, &connector.DialError{Addr: "sim", Err: fmt.Errorf("dial %s from the host: connection timed out", address), Hint: "check on the host that the address answers"}
	case open != nil:
		return open(), nil
	}
	return nil, &net.OpError{Op: "dial", Net: network, Err: fmt.Errorf("%s: %w", address, syscall.ECONNREFUSED)}
}

// Listen accepts connections from the host's own programs; see connector.Forwarder.
func (s *Sim) Listen(_ context.Context, _, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	f := &s.forwards
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.forbidden {
		return nil, &connector.DialError{Addr: "sim", Err: fmt.Errorf("listen on %s from the host: the host refused", address), Hint: "allow it"}
	}
	if port == "0" {
		f.last++
		port = strconv.Itoa(40000 + f.last)
	}
	address = net.JoinHostPort(host, port)
	if f.open[address] != nil {
		return nil, &net.OpError{Op: "listen", Err: fmt.Errorf("%s: %w", address, syscall.EADDRINUSE)}
	}
	if f.open == nil {
		f.open = map[string]*forward{}
	}
	l := &forward{of: f, address: address, conns: make(chan net.Conn), ended: make(chan struct{})}
	f.open[address] = l
	return l, nil
}

// reach connects from the host to one of its own ports.
func (s *Sim) reach(ctx context.Context, address string) (net.Conn, error) {
	s.forwards.mu.Lock()
	l := s.forwards.open[address]
	s.forwards.mu.Unlock()
	if l == nil {
		return s.Dial(ctx, "tcp", address)
	}
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.ended:
		return s.Dial(ctx, "tcp", address)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// closeAll ends what goes through a wire that breaks.
func (f *forwards) closeAll() {
	f.mu.Lock()
	all := f.open
	f.open = nil
	f.mu.Unlock()
	for _, l := range all {
		l.end()
	}
}

// forward is one port.
type forward struct {
	of      *forwards
	address string
	conns   chan net.Conn
	ended   chan struct{}
	once    sync.Once
}

func (l *forward) end() { l.once.Do(func() { close(l.ended) }) }

// Accept returns the next connection.
func (l *forward) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.ended:
		return nil, io.EOF
	}
}

// Close frees the port.
func (l *forward) Close() error {
	l.of.mu.Lock()
	if l.of.open[l.address] == l {
		delete(l.of.open, l.address)
	}
	l.of.mu.Unlock()
	l.end()
	return nil
}

// Addr returns the address on the host.
func (l *forward) Addr() net.Addr {
	host, port, _ := net.SplitHostPort(l.address)
	n, _ := strconv.Atoi(port)
	return &net.TCPAddr{IP: net.ParseIP(host), Port: n}
}
