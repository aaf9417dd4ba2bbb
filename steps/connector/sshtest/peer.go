package sshtest

import (
	"context"
	"errors"
	"io"
	"net"
	"os/exec"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/crypto/ssh"
)

// peer is one client.
type peer struct {
	server *Server
	conn   *ssh.ServerConn
	wg     sync.WaitGroup

	mu        sync.Mutex
	sessions  int
	listeners map[string]net.Listener
	joined    map[net.Conn]bool
	ended     bool
}

// end ends what was opened for the client.
func (p *peer) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	for _, l := range p.listeners {
		_ = l.Close()
	}
	for c := range p.joined {
		_ = c.Close()
	}
}

// join copies both ways until both sides end, or the client is gone.
func (p *peer) join(ch ssh.Channel, conn net.Conn) {
	p.mu.Lock()
	p.joined[conn] = true
	ended := p.ended
	p.mu.Unlock()
	if !ended {
		copyBoth(ch, conn)
	}
	p.mu.Lock()
	delete(p.joined, conn)
	p.mu.Unlock()
	_ = conn.Close()
	_ = ch.Close()
}

// enter counts a session in, unless there are too many.
func (p *peer) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if limit := p.server.cfg.MaxSessions; limit != 0 && p.sessions >= limit {
		return false
	}
	p.sessions++
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.server.opened++
	p.server.most = max(p.server.most, p.sessions)
	return true
}

func (p *peer) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions--
}

func (p *peer) session(nc ssh.NewChannel) {
	if !p.enter() {
		_ = nc.Reject(ssh.ConnectionFailed, "open failed") // sshd's words
		return
	}
	defer p.leave()
	ch, reqs, err := nc.Accept()
	if err != nil {
		return
	}
	defer ch.Close()
	for req := range reqs {
		var line struct{ Command string }
		if req.Type != "exec" || ssh.Unmarshal(req.Payload, &line) != nil {
			_ = req.Reply(false, nil)
			continue
		}
		_ = req.Reply(true, nil)
		if p.server.cfg.Run != nil {
			p.hand(ch, reqs, line.Command)
		} else {
			p.exec(ch, reqs, line.Command)
		}
		return
	}
}

// exec runs one command line as sshd does: by the login shell, which is sh. It
// returns when the command ended or the client closed the channel; that by itself
// ends no command, which then goes on until the server is closed.
func (p *peer) exec(ch ssh.Channel, reqs <-chan *ssh.Request, line string) {
	cmd := exec.CommandContext(p.server.ctx, "/bin/sh", "-c", line)
	cmd.Dir, cmd.Env = p.server.cfg.Dir, p.server.cfg.Env
	cmd.Stdout, cmd.Stderr = ch, ch.Stderr()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		_, _ = io.WriteString(ch.Stderr(), err.Error()+"\n")
		_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{127}))
		return
	}
	go func() {
		_, _ = io.CopyBuffer(onlyWriter{in}, onlyReader{ch}, make([]byte, 256<<10)) // the command may not want it
		_ = in.Close()
	}()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		for req := range reqs {
			var sig struct{ Name string }
			if req.Type == "signal" && !p.server.cfg.NoSignals && ssh.Unmarshal(req.Payload, &sig) == nil {
				_ = syscall.Kill(-cmd.Process.Pid, signals[sig.Name])
			}
			if req.WantReply {
				_ = req.Reply(true, nil)
			}
		}
	}()
	ended := make(chan error, 1)
	p.server.wg.Go(func() { ended <- cmd.Wait() })
	select {
	case err := <-ended:
		tellEnd(ch, err)
	case <-closed:
	}
}

// hand gives a command line to Config.Run. Signals end it as a closed channel does.
func (p *peer) hand(ch ssh.Channel, reqs <-chan *ssh.Request, line string) {
	ctx, cancel := context.WithCancel(p.server.ctx)
	defer cancel()
	go func() {
		defer cancel()
		for req := range reqs {
			if req.Type == "signal" && !p.server.cfg.NoSignals {
				cancel()
			}
			if req.WantReply {
				_ = req.Reply(true, nil)
			}
		}
	}()
	status := p.server.cfg.Run(ctx, line, onlyReader{ch}, ch, ch.Stderr())
	_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(status)})) //nolint:gosec // a status
}

// tellEnd tells the client how a command ended.
func tellEnd(ch ssh.Channel, err error) {
	status := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			for name, sig := range signals {
				if sig == ws.Signal() {
					_, _ = ch.SendRequest("exit-signal", false, ssh.Marshal(struct {
						Signal     string
						Core       bool
						Text, Lang string
					}{Signal: name}))
					return
				}
			}
		}
		status = exit.ExitCode()
	}
	_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(status)}))
}

var signals = map[string]syscall.Signal{
	"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL, "PIPE": syscall.SIGPIPE,
}

// onlyReader and onlyWriter hide ReadFrom and WriteTo, so that the buffer is used.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)

// direct forwards a connection from here.
func (p *peer) direct(nc ssh.NewChannel) {
	var to struct {
		Host   string
		Port   uint32
		Origin string
		From   uint32
	}
	if p.server.cfg.NoForward || ssh.Unmarshal(nc.ExtraData(), &to) != nil {
		_ = nc.Reject(ssh.Prohibited, "administratively prohibited: open failed")
		return
	}
	conn, err := p.server.cfg.Dial(p.server.ctx, "tcp", net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))))
	if err != nil {
		_ = nc.Reject(ssh.ConnectionFailed, "Connection refused")
		return
	}
	ch, reqs, err := nc.Accept()
	if err != nil {
		_ = conn.Close()
		return
	}
	go ssh.DiscardRequests(reqs)
	p.join(ch, conn)
}

func copyBoth(ch ssh.Channel, conn net.Conn) {
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = io.Copy(conn, ch)
		if c, ok := conn.(*net.TCPConn); ok {
			_ = c.CloseWrite()
		}
	})
	wg.Go(func() {
		_, _ = io.Copy(ch, conn)
		_ = ch.CloseWrite()
	})
	wg.Wait()
}

// requests serves what is asked outside of any channel: listening, and keepalives.
func (p *peer) requests(reqs <-chan *ssh.Request) {
	for req := range reqs {
		var at struct {
			Host string
			Port uint32
		}
		ok := false
		var answer []byte
		switch {
		case p.server.cfg.NoForward || ssh.Unmarshal(req.Payload, &at) != nil:
		case req.Type == "tcpip-forward":
			if port, err := p.listen(at.Host, at.Port); err == nil {
				ok = true
				if at.Port == 0 {
					answer = ssh.Marshal(struct{ Port uint32 }{port})
				}
			}
		case req.Type == "cancel-tcpip-forward":
			p.mu.Lock()
			l := p.listeners[net.JoinHostPort(at.Host, strconv.Itoa(int(at.Port)))]
			p.mu.Unlock()
			if l != nil {
				ok = l.Close() == nil
			}
		}
		if req.WantReply {
			_ = req.Reply(ok, answer)
		}
	}
}

func (p *peer) listen(host string, port uint32) (uint32, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(int(port))))
	if err != nil {
		return 0, err
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.Join(errors.New("not TCP"), l.Close())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return 0, errors.Join(net.ErrClosed, l.Close())
	}
	p.listeners[net.JoinHostPort(host, strconv.Itoa(addr.Port))] = l
	p.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			from, _ := conn.RemoteAddr().(*net.TCPAddr)
			ch, reqs, err := p.conn.OpenChannel("forwarded-tcpip", ssh.Marshal(struct {
				Host   string
				Port   uint32
				Origin string
				From   uint32
			}{host, uint32(addr.Port), from.IP.String(), uint32(from.Port)})) //nolint:gosec // ports
			if err != nil {
				_ = conn.Close()
				continue
			}
			go ssh.DiscardRequests(reqs)
			p.wg.Go(func() { p.join(ch, conn) })
		}
	})
	return uint32(addr.Port), nil //nolint:gosec // a port
}
