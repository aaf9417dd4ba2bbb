package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/kubexm/steps/connector"
)

// grace is the time between SIGTERM and closing the channel of a command. connector.Wire
// terminates commands that continue after that.
const grace = 300 * time.Millisecond

// Exec runs one command; see connector.Conn.
func (c *Conn) Exec(ctx context.Context, cmd connector.Cmd) (connector.Result, error) {
	var reached atomic.Bool
	w := connector.Wire{
		Addr: c.cfg.addr(), Path: c.cfg.Path, Sudo: c.sudo, Lingers: true, Reached: reached.Load,
		Start: func(ctx context.Context, argv []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
			return c.start(ctx, cmd.Verb, argv, stdin, stdout, stderr, &reached)
		},
	}
	if c.Root() {
		w.Sudo = nil
	}
	return w.Execute(ctx, cmd)
}

// start runs argv in a separate channel. It sets reached once the channel is open.
func (c *Conn) start(ctx context.Context, verb string, argv []string, stdin io.Reader, stdout, stderr io.Writer, reached *atomic.Bool) (int, error) {
	if err := c.gate.enter(ctx); err != nil {
		return 0, err
	}
	entered := true
	defer func() {
		if entered {
			c.gate.leave()
		}
	}()
	for {
		cl, sess, err := c.open(ctx)
		var refused *ssh.OpenChannelError
		if errors.As(err, &refused) && c.gate.tooMany() {
			// The server accepts fewer parallel sessions than assumed: wait for one to end.
			c.gate.leave()
			entered = false
			if err := c.gate.enter(ctx); err != nil {
				return 0, err
			}
			entered = true
			continue
		}
		if refused != nil {
			return 0, fmt.Errorf("open a session on %s: %w", c.cfg.addr(), plainRefusal(err))
		}
		if err != nil {
			return 0, err
		}
		reached.Store(true)
		r := &running{Session: sess, client: cl, addr: c.cfg.addr(), verb: verb}
		return r.run(ctx, argv, stdin, stdout, stderr)
	}
}

// open opens a channel for one command. If the connection turns out to be broken, it
// reconnects once: no command was run on it.
func (c *Conn) open(ctx context.Context) (*client, *ssh.Session, error) {
	for retry := true; ; retry = false {
		cl, err := c.connect(ctx)
		if err != nil {
			return nil, nil, err
		}
		sess, err := newSession(ctx, cl)
		if err == nil {
			return cl, sess, nil
		}
		var refused *ssh.OpenChannelError
		if errors.As(err, &refused) || ctx.Err() != nil {
			return nil, nil, err
		}
		cl.end(err)
		<-cl.gone
		if !retry {
			return nil, nil, &connector.DialError{
				Addr: c.cfg.addr(), Err: fmt.Errorf("the connection breaks right after the login: %w", cl.cause(err)),
				Hint: "check the log of sshd on the host: `journalctl -u ssh -u sshd`",
			}
		}
	}
}

// newSession is cl.NewSession with a context.
func newSession(ctx context.Context, cl *client) (*ssh.Session, error) {
	type opened struct {
		*ssh.Session
		error
	}
	done := make(chan opened, 1)
	go func() {
		s, err := cl.NewSession()
		done <- opened{s, err}
	}()
	select {
	case o := <-done:
		return o.Session, o.error
	case <-ctx.Done():
		go func() {
			if o := <-done; o.error == nil {
				_ = o.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// running is one command on its channel.
type running struct {
	*ssh.Session
	client *client
	addr   string
	verb   string
}

func (r *running) run(ctx context.Context, argv []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r.Stdout, r.Stderr = stdout, stderr
	in, err := r.StdinPipe()
	if err != nil {
		return 0, err
	}
	type end struct {
		exit int
		err  error
	}
	ended := make(chan end, 1)
	go func() {
		// exec replaces the shell by the command, which then receives the signals.
		if err := r.Start("exec " + connector.Quote(argv)); err != nil {
			ended <- end{0, r.broken(err)}
			return
		}
		go connector.Feed(in, stdin, stop)
		exit, err := r.wait()
		ended <- end{exit, err}
	}()
	select {
	case e := <-ended:
		_ = r.Close() // the command has ended: usually io.EOF
		return e.exit, e.err
	case <-ctx.Done():
	}
	closing := make(chan struct{})
	go func() { // these calls block on a dead connection
		_ = r.Signal(ssh.SIGTERM)
		<-closing
		_ = r.Close()
	}()
	defer close(closing)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
	return 0, context.Cause(ctx)
}

// wait returns the exit status after all output was read.
func (r *running) wait() (int, error) {
	err := r.Wait()
	var exit *ssh.ExitError
	switch {
	case err == nil:
		return 0, nil
	case !errors.As(err, &exit):
		return 0, r.broken(err)
	case exit.Signal() != "":
		return 128 + signals[ssh.Signal(exit.Signal())], nil
	}
	return exit.ExitStatus(), nil
}

func (r *running) broken(err error) error {
	var missing *ssh.ExitMissingError
	if errors.As(err, &missing) || errors.Is(err, io.EOF) {
		err = errors.New("closed by the remote host")
	}
	return &connector.BrokenError{Addr: r.addr, Verb: r.verb, Err: r.client.cause(err)}
}

// signals are the signals of the SSH protocol with their numbers on Linux.
var signals = map[ssh.Signal]int{
	ssh.SIGHUP: 1, ssh.SIGINT: 2, ssh.SIGQUIT: 3, ssh.SIGILL: 4, ssh.SIGABRT: 6, ssh.SIGFPE: 8,
	ssh.SIGKILL: 9, ssh.SIGUSR1: 10, ssh.SIGSEGV: 11, ssh.SIGUSR2: 12, ssh.SIGPIPE: 13, ssh.SIGALRM: 14, ssh.SIGTERM: 15,
}
