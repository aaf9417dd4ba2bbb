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
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/ssh"
)

// Config configures a Server.
type Config struct {
	Password    string          // empty: no passwords
	Interactive string          // the answer to the keyboard-interactive question; empty: disabled
	Keys        []ssh.PublicKey // accepted keys
	HostKeys    []ssh.Signer    // empty: a new ed25519 key
	MaxSessions int             // per connection; 0: any number, -1: none
	NoForward   bool            // refuse to forward TCP
	NoSignals   bool            // do not forward signals, like sshd for root logins
	Dir         string          // the working directory of commands; empty: a new folder
	Env         []string        // the environment of commands; empty: a PATH

	// Listen is the listen address; empty: any port of 127.0.0.1.
	Listen string
	// Run runs a command line instead of /bin/sh and returns its exit status. ctx and
	// stdin end when the client closes the command's channel or disconnects. Run decides
	// whether the command continues.
	Run func(ctx context.Context, line string, stdin io.Reader, stdout, stderr io.Writer) int
	// Dial opens forwarded connections; nil: to the requested address.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Server is a running SSH server.
type Server struct {
	// Addr is the server's host:port; Host and Port are its parts.
	Addr string
	Host string
	Port int
	Dir  string

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
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	s, err := Serve(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Serve starts a server that runs until it is closed, for programs other than tests.
// Without Config.Dir, commands run in the working directory of the process.
func Serve(cfg Config) (*Server, error) {
	if len(cfg.HostKeys) == 0 {
		key, err := newKey("ed25519")
		if err != nil {
			return nil, err
		}
		signer, err := ssh.NewSignerFromKey(key)
		if err != nil {
			return nil, err
		}
		cfg.HostKeys = []ssh.Signer{signer}
	}
	if len(cfg.Env) == 0 {
		cfg.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	}
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{}).DialContext
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(context.Background(), "tcp", cfg.Listen)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, Dir: cfg.Dir, listener: listener, conns: map[*link]bool{}}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.Addr = listener.Addr().String()
	addr, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return nil, errors.Join(errors.New("not TCP"), listener.Close())
	}
	s.Host, s.Port = addr.IP.String(), addr.Port
	s.ssh = s.config()
	s.wg.Add(1)
	go s.accept()
	return s, nil
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

// HostKey returns the server's first host key.
func (s *Server) HostKey() ssh.PublicKey { return s.cfg.HostKeys[0].PublicKey() }

// SetHostKeys replaces the server's host keys for later connections.
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

// Drop closes all connections, as a crash of the host does.
func (s *Server) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.Close()
	}
}

// Silence makes the server stop sending and receiving on connections that stay open, like a
// host with an unplugged cable. Speak ends it.
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

// Open returns the number of open connections.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Connections returns the number of connections so far.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Asked returns how many times the server sent the keyboard-interactive question.
func (s *Server) Asked() int { return int(s.asked.Load()) }

// Sessions returns the number of sessions so far, and the maximum number of parallel ones.
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

// Key creates a key: ed25519, ecdsa or rsa.
func Key(t testing.TB, kind string) ssh.Signer {
	t.Helper()
	signer, err := ssh.NewSignerFromKey(PrivateKey(t, kind))
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// PrivateKey creates a key as a type of the crypto packages.
func PrivateKey(t testing.TB, kind string) any {
	t.Helper()
	key, err := newKey(kind)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newKey(kind string) (key any, err error) {
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
	return key, err
}
