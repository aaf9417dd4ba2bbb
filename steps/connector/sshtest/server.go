package sshtest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/ssh"
)

// Config says what a Server takes.
type Config struct {
	Password    string          // empty: no passwords
	Interactive string          // the answer to the one question of keyboard-interactive; empty: none is asked
	Keys        []ssh.PublicKey // that may log in
	HostKeys    []ssh.Signer    // empty: a new ed25519 key
	MaxSessions int             // per connection; 0: any number, -1: none
	NoForward   bool            // refuse to forward TCP
	NoSignals   bool            // pass no signals on, as sshd does not when root logs in
	Dir         string          // where commands run; empty: a new folder
	Env         []string        // what commands have in their environment; empty: a PATH
}

// Server is a running SSH server.
type Server struct {
	// Addr is its host:port, Host and Port the same apart.
	Addr string
	Host string
	Port int
	Dir  string

	t        testing.TB
	cfg      Config
	ssh      *ssh.ServerConfig
	listener net.Listener
	wg       sync.WaitGroup
	asked    atomic.Int32
	ctx      context.Context // as long as the server; its commands end with it
	end      context.CancelFunc

	mu     sync.Mutex
	conns  map[*link]bool
	total  int
	most   int // sessions at the same time on one connection
	opened int // sessions
	silent bool
	closed bool
}

// Start starts a server that ends with the test.
func Start(t testing.TB, cfg Config) *Server {
	t.Helper()
	if len(cfg.HostKeys) == 0 {
		cfg.HostKeys = []ssh.Signer{Key(t, "ed25519")}
	}
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	if len(cfg.Env) == 0 {
		cfg.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, cfg: cfg, Dir: cfg.Dir, listener: listener, conns: map[*link]bool{}}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.Addr = listener.Addr().String()
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	s.Host = host
	if s.Port, err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	s.ssh = s.config()
	s.wg.Add(1)
	go s.accept()
	t.Cleanup(s.Close)
	return s
}

func (s *Server) config() *ssh.ServerConfig {
	refused := errors.New("refused")
	c := &ssh.ServerConfig{MaxAuthTries: 6}
	if s.cfg.Password != "" {
		c.PasswordCallback = func(_ ssh.ConnMetadata, p []byte) (*ssh.Permissions, error) {
			if string(p) != s.cfg.Password {
				return nil, refused
			}
			return nil, nil
		}
	}
	if s.cfg.Interactive != "" {
		c.KeyboardInteractiveCallback = func(_ ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
			for range 3 { // in one dialogue, as PAM may
				s.asked.Add(1)
				answers, err := ask("", "", []string{"Password: "}, []bool{false})
				if err != nil {
					return nil, err
				}
				if len(answers) == 1 && answers[0] == s.cfg.Interactive {
					return nil, nil
				}
			}
			return nil, refused
		}
	}
	if len(s.cfg.Keys) > 0 {
		c.PublicKeyCallback = func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			for _, k := range s.cfg.Keys {
				if bytes.Equal(k.Marshal(), key.Marshal()) {
					return nil, nil
				}
			}
			return nil, refused
		}
	}
	for _, k := range s.cfg.HostKeys {
		c.AddHostKey(k)
	}
	return c
}

// HostKey gives the server's first host key.
func (s *Server) HostKey() ssh.PublicKey { return s.cfg.HostKeys[0].PublicKey() }

// SetHostKeys gives the server other host keys, for connections from now on.
func (s *Server) SetHostKeys(keys ...ssh.Signer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.HostKeys = keys
	s.ssh = s.config()
}

// Close ends the server and its connections.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	_ = s.listener.Close()
	s.Speak()
	s.Drop()
	s.end()
	s.wg.Wait()
}

// Drop ends all connections, as a crash of the host does.
func (s *Server) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.Close()
	}
}

// Silence makes the server say and hear nothing, on connections that stay open:
// as a host does whose cable was pulled. Speak ends it.
func (s *Server) Silence() { s.setSilent(true) }

// Speak ends Silence.
func (s *Server) Speak() { s.setSilent(false) }

func (s *Server) setSilent(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = on
	for c := range s.conns {
		c.hold(on)
	}
}

// Connections gives how many connections there were so far.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Asked gives how often the question of keyboard-interactive was asked.
func (s *Server) Asked() int { return int(s.asked.Load()) }

// Sessions gives how many sessions there were, and the most at the same time.
func (s *Server) Sessions() (total, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened, s.most
}

func (s *Server) accept() {
	defer s.wg.Done()
	for {
		raw, err := s.listener.Accept()
		if err != nil {
			return
		}
		l := newLink(raw)
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			_ = raw.Close()
			return
		}
		s.conns[l] = true
		s.total++
		l.hold(s.silent)
		cfg := s.ssh
		s.wg.Add(1)
		s.mu.Unlock()
		go func() {
			defer s.wg.Done()
			s.serve(l, cfg)
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.conns, l)
		}()
	}
}

func (s *Server) serve(l *link, cfg *ssh.ServerConfig) {
	defer l.Close()
	conn, chans, reqs, err := ssh.NewServerConn(l, cfg)
	if err != nil {
		return // the client's test sees it
	}
	p := &peer{server: s, conn: conn, listeners: map[string]net.Listener{}, joined: map[net.Conn]bool{}}
	p.wg.Go(func() { p.requests(reqs) })
	for ch := range chans {
		switch ch.ChannelType() {
		case "session":
			p.wg.Go(func() { p.session(ch) })
		case "direct-tcpip":
			p.wg.Go(func() { p.direct(ch) })
		default:
			_ = ch.Reject(ssh.UnknownChannelType, "unknown channel type")
		}
	}
	p.end()
	p.wg.Wait()
}

// Key makes a key: ed25519, ecdsa or rsa.
func Key(t testing.TB, kind string) ssh.Signer {
	t.Helper()
	signer, err := ssh.NewSignerFromKey(PrivateKey(t, kind))
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// PrivateKey makes a key, as crypto/... has them.
func PrivateKey(t testing.TB, kind string) any {
	t.Helper()
	var key any
	var err error
	switch kind {
	case "ed25519":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	case "ecdsa":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "rsa":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	default:
		err = errors.New("no such kind of key: " + kind)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key
}

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
