package connector

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"sync"
)

// Start runs argv unchanged as the login user. It returns the exit status after all output
// was written. It does not wait for the end of stdin.
type Start func(ctx context.Context, argv []string, stdin io.Reader, stdout, stderr io.Writer) (int, error)

// begun runs first as root: it prints the token $1 and then executes the command. The token
// marks the end of sudo's own output. Only then may the command's input follow: sent
// earlier, a password that sudo did not prompt for would become input of the command.
const begun = `printf %s "$1" >&2; shift; exec "$@"`

// maxPreamble is the maximum size of sudo's output (the lecture, a message of the day)
// before the command begins.
const maxPreamble = 64 << 10

// Sudo runs commands as root over one connection. It first tries without a password. If
// sudo requires one, it answers a random prompt with the password on standard input: the
// password is in no argv, environment or log. After sudo has rejected it, Run fails
// without another attempt, because wrong passwords may lock the account.
//
// It is safe for concurrent use.
type Sudo struct {
	Addr, User string
	Password   string // empty: none

	once    sync.Once
	lock    chan struct{} // protects the fields below; a channel, so that waiting can be interrupted
	settled bool
	ask     bool // sudo requires the password
	refused *SudoError
}

// Run runs argv as root. It reads nothing from stdin before the command itself runs.
func (s *Sudo) Run(ctx context.Context, start Start, argv []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	ask, err := s.settle(ctx, start)
	if err != nil {
		return 0, err
	}
	return s.run(ctx, start, ask, argv, stdin, stdout, stderr)
}

// settle determines, once per connection, whether sudo requires a password.
func (s *Sudo) settle(ctx context.Context, start Start) (ask bool, err error) {
	s.once.Do(func() { s.lock = make(chan struct{}, 1) })
	select {
	case s.lock <- struct{}{}:
		defer func() { <-s.lock }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	if s.settled {
		if s.refused != nil {
			return false, s.refused
		}
		return s.ask, nil
	}
	for _, ask := range []bool{false, true} {
		_, err := s.run(ctx, start, ask, []string{"true"}, nil, io.Discard, io.Discard)
		var refused *SudoError
		switch {
		case errors.As(err, &refused):
			s.refused = refused
		case err != nil:
			return false, err
		default:
			s.settled, s.ask, s.refused = true, ask, nil
			return ask, nil
		}
		if s.Password == "" {
			break
		}
	}
	s.settled = true
	return false, s.refused
}

// run runs argv under sudo once, with or without the password.
func (s *Sudo) run(ctx context.Context, start Start, ask bool, argv []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	prompt, token := "kubexm-"+rand.Text()+":", "kubexm-"+rand.Text()+"."
	full := []string{"sudo", "-n", "--"}
	if ask {
		// -k ignores cached credentials, so that sudo always prompts.
		full = []string{"sudo", "-k", "-S", "-p", prompt, "--"}
	}
	full = append(full, "/bin/sh", "-c", begun, "sh", token)
	full = append(full, argv...)

	in := &gate{state: make(chan struct{}), command: stdin, password: s.Password + "\n"}
	defer in.end()
	intro := &preamble{prompt: []byte(prompt), begun: []byte(token), gate: in, to: stderr}
	exit, err := start(ctx, full, in, stdout, intro)
	if err != nil {
		return exit, err
	}
	if !intro.done {
		message := strings.TrimSpace(strings.ReplaceAll(string(intro.buf), prompt, ""))
		// With passwd_tries=1 there is no second prompt, only this message.
		wrong := intro.prompts > 1 || intro.prompts == 1 && strings.Contains(message, "incorrect password")
		// The reason is the last line: a lecture may precede it.
		return 0, &SudoError{Addr: s.Addr, User: s.User, Wrong: wrong, Stderr: message[strings.LastIndexByte(message, '\n')+1:]}
	}
	return exit, nil
}

// preamble parses standard error until the command begins, and then passes it through.
type preamble struct {
	prompt, begun []byte
	gate          *gate
	to            io.Writer
	buf           []byte
	prompts       int
	done          bool
}

func (p *preamble) Write(b []byte) (int, error) {
	if p.done {
		return p.to.Write(b)
	}
	p.buf = append(p.buf, b...)
	if i := bytes.Index(p.buf, p.begun); i >= 0 {
		p.done = true
		p.gate.open()
		rest := p.buf[i+len(p.begun):]
		p.buf = nil
		if len(rest) > 0 {
			if _, err := p.to.Write(rest); err != nil {
				return 0, err
			}
		}
		return len(b), nil
	}
	if n := bytes.Count(p.buf, p.prompt); n > p.prompts {
		p.prompts = n
		if n == 1 {
			p.gate.ask()
		} else {
			p.gate.end() // a second prompt: the password is wrong
		}
	}
	if len(p.buf) > maxPreamble {
		p.gate.end()
		p.buf = p.buf[:maxPreamble]
	}
	return len(b), nil
}

// gate is the input of a command under sudo: the password after sudo has prompted for it,
// then the command's own input once the command has begun.
type gate struct {
	command  io.Reader
	password string

	mu    sync.Mutex
	asked bool
	begun bool
	ended bool
	state chan struct{} // closed and replaced when one of the above changes
}

func (g *gate) open() { g.set(&g.begun) }
func (g *gate) ask()  { g.set(&g.asked) }
func (g *gate) end()  { g.set(&g.ended) }

func (g *gate) set(what *bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	*what = true
	close(g.state)
	g.state = make(chan struct{})
}

func (g *gate) Read(b []byte) (int, error) {
	for {
		g.mu.Lock()
		asked, begun, ended, changed := g.asked, g.begun, g.ended, g.state
		if asked && !begun && g.password != "" {
			n := copy(b, g.password)
			g.password = g.password[n:]
			g.mu.Unlock()
			return n, nil
		}
		g.mu.Unlock()
		switch {
		case ended, begun && g.command == nil:
			return 0, io.EOF
		case begun:
			return g.command.Read(b)
		}
		<-changed
	}
}
