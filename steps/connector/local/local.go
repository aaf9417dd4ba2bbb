package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
)

// grace is the time between SIGTERM and SIGKILL.
const grace = 2 * time.Second

// here is the name of this machine in errors.
const here = "this machine"

// Config configures the commands of a Conn.
type Config struct {
	User         string // user name in errors
	SudoPassword string // empty: sudo requires no password
	Path         string // PATH of commands; empty: connector.SearchPath
	Dir          string // the working directory of commands; empty: "/"
}

// Conn runs commands on this machine. It implements connector.Conn and
// connector.Forwarder.
type Conn struct {
	cfg  Config
	sudo *connector.Sudo

	mu     sync.Mutex
	closed bool
	ending chan struct{} // closed by Close
}

// New returns a Conn.
func New(cfg Config) *Conn {
	if cfg.Dir == "" {
		cfg.Dir = "/"
	}
	return &Conn{
		cfg: cfg, ending: make(chan struct{}),
		sudo: &connector.Sudo{Addr: here, User: cfg.User, Password: cfg.SudoPassword},
	}
}

// Root reports whether commands run as root without sudo.
func (c *Conn) Root() bool { return os.Geteuid() == 0 }

// Close terminates all running commands. Later calls of Exec fail.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		close(c.ending)
	}
	return nil
}

// Exec runs one command; see connector.Conn.
func (c *Conn) Exec(ctx context.Context, cmd connector.Cmd) (connector.Result, error) {
	select {
	case <-c.ending:
		return connector.Result{}, connector.ErrClosed
	default:
	}
	w := connector.Wire{
		Addr: here, Path: c.cfg.Path, Sudo: c.sudo,
		Start: func(ctx context.Context, argv []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
			return c.start(ctx, cmd.Verb, argv, stdin, stdout, stderr)
		},
	}
	if c.Root() {
		w.Sudo = nil
	}
	return w.Execute(ctx, cmd)
}

// start runs argv. It implements connector.Start.
func (c *Conn) start(ctx context.Context, verb string, argv []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:forbidigo,gosec // the only place that starts programs; the caller chooses argv
	cmd.Dir = c.cfg.Dir
	cmd.Env = []string{"HOME=" + homeOr("/root")}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.WaitDelay = grace // a child of the command may keep the output open
	// A separate process group, so that children receive the signals as well.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start %s: %w", argv[0], err)
	}
	go connector.Feed(in, stdin, stop)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return status(err)
	case <-ctx.Done():
	case <-c.ending:
		stop(&connector.BrokenError{Addr: here, Verb: verb, Err: connector.ErrClosed})
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-ended: //nolint:errcheck // the exit status is meaningless: it was terminated
	case <-timer.C:
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended //nolint:errcheck // as above
	}
	return 0, context.Cause(ctx)
}

// status converts the result of Wait to an exit status.
func status(err error) (int, error) {
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return 0, nil
	case !errors.As(err, &exit):
		return 0, err
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), nil
	}
	return exit.ExitCode(), nil
}

// Dial connects from this machine; see connector.Forwarder.
func (c *Conn) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

// Listen listens on this machine; see connector.Forwarder.
func (c *Conn) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	var l net.ListenConfig
	return l.Listen(ctx, network, address)
}

func homeOr(otherwise string) string {
	if h, err := os.UserHomeDir(); err == nil {
		return h
	}
	return otherwise
}
