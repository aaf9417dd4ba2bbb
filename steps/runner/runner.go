package runner

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
)

// Options configure a Runner.
type Options struct {
	// Redactor masks the secrets of the cluster. Nil masks nothing.
	Redactor *connector.Redactor
	// Log receives one line per command at debug level: verb, arguments, exit status,
	// duration. Nil disables logging.
	Log *slog.Logger
	// AsLogin runs all commands as the login user instead of root.
	AsLogin bool
	// Observe is called after each command, in the goroutine that ran it. It is for
	// audit logs: the arguments are redacted. Nil disables it.
	Observe func(CommandRecord)
	// DefaultTimeout is the timeout of commands that have none, if the context has no deadline
	// either; 0 means 10 minutes.
	DefaultTimeout time.Duration
}

// defaultTimeout is the default of Options.DefaultTimeout.
const defaultTimeout = 10 * time.Minute

// CommandRecord is one executed command.
type CommandRecord struct {
	Verb string
	Args []string // connector.Cmd.Args, redacted
	Exit int      // -1 if Err is set
	Err  error
	Took time.Duration
}

// Runner performs operations on one host. It is safe for concurrent use.
type Runner struct {
	conn connector.Conn
	opt  Options

	mu     sync.Mutex
	sealed map[string]sealed // by path
}

// New returns a Runner over conn. The caller remains responsible for closing conn.
func New(conn connector.Conn, opt Options) *Runner {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	return &Runner{conn: conn, opt: opt, sealed: map[string]sealed{}}
}

// AsLogin returns a Runner over the same connection that runs all commands as the login
// user.
func (r *Runner) AsLogin() *Runner {
	o := r.opt
	o.AsLogin = true
	return New(r.conn, o)
}

// Conn returns the connection, for its other interfaces such as connector.Forwarder.
func (r *Runner) Conn() connector.Conn { return r.conn }

// Cmd is one program to run.
type Cmd struct {
	Argv    []string
	Stdin   io.Reader
	Timeout time.Duration // 0: the context's deadline, or else Options.DefaultTimeout
	// AsLogin runs the program as the login user instead of root.
	AsLogin bool
	// Secrets are masked in errors and logs, in addition to those of the Redactor.
	Secrets []string
	// Output receives standard output and standard error while the program runs,
	// redacted. Lines of the two streams may interleave; single writes do not.
	Output io.Writer
	// Stdout receives the unredacted standard output. It is for large output.
	Stdout io.Writer
	// OK are exit statuses besides 0 that are not errors.
	OK []int
	// Limit is the maximum number of bytes of standard output in the Result; 0 means
	// connector.DefaultLimit. More output is ErrTruncated, unless AllowTruncated is set or
	// Stdout receives all of it.
	Limit int
	// AllowTruncated accepts truncated output: the beginning is enough.
	AllowTruncated bool
}

// Exec runs argv as root and returns its unredacted standard output. An exit status other
// than 0 is a *CmdError; more than connector.DefaultLimit bytes are ErrTruncated.
func (r *Runner) Exec(ctx context.Context, argv ...string) ([]byte, error) {
	res, err := r.Run(ctx, Cmd{Argv: argv})
	return res.Stdout, err
}

// scriptMerged runs a program with standard error redirected to standard output.
const scriptMerged = `exec "$@" 2>&1`

// Merged is Exec with standard error and standard output in one stream, in the order of
// writing. It truncates output above the limit without an error.
func (r *Runner) Merged(ctx context.Context, argv ...string) ([]byte, error) {
	res, err := r.do(ctx, connector.Cmd{Verb: connector.VerbExec, Argv: shell(scriptMerged, argv...), Sudo: true, AllowTruncated: true})
	return res.Stdout, err
}

// Run runs c. An exit status other than 0 and those of c.OK is a *CmdError; Run then
// returns the Result as well.
func (r *Runner) Run(ctx context.Context, c Cmd) (connector.Result, error) {
	cc := connector.Cmd{
		Verb: connector.VerbExec, Argv: c.Argv, Stdin: c.Stdin, Timeout: c.Timeout,
		Secrets: c.Secrets, Limit: c.Limit, AllowTruncated: c.AllowTruncated, Sudo: !c.AsLogin, Stdout: c.Stdout,
	}
	if c.Output == nil {
		return r.do(ctx, cc, c.OK...)
	}
	red := r.opt.Redactor.With(c.Secrets...)
	both := &syncWriter{w: c.Output}
	out, errs := red.Writer(both), red.Writer(both)
	cc.Stderr = errs
	if cc.Stdout != nil {
		cc.Stdout = io.MultiWriter(cc.Stdout, out)
	} else {
		cc.Stdout = out
	}
	res, err := r.do(ctx, cc, c.OK...)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if cerr := errs.Close(); err == nil {
		err = cerr
	}
	return res, err
}

// do runs c and turns unexpected exit statuses into a *CmdError.
func (r *Runner) do(ctx context.Context, c connector.Cmd, ok ...int) (connector.Result, error) {
	if r.opt.AsLogin {
		c.Sudo = false
	}
	if _, ends := ctx.Deadline(); !ends && c.Timeout == 0 && c.Verb != connector.VerbLease { // a lease lasts as long as its holder
		c.Timeout = cmp.Or(r.opt.DefaultTimeout, defaultTimeout)
	}
	red := r.opt.Redactor.With(c.Secrets...)
	began := time.Now()
	res, err := r.conn.Exec(ctx, c)
	ran := CommandRecord{Verb: c.Verb, Args: red.Argv(c.Args()), Exit: res.Exit, Err: err, Took: time.Since(began)}
	if c.Verb == connector.VerbExec {
		ran.Args = red.Argv(c.Argv)
	}
	if err != nil {
		ran.Exit = -1
	}
	r.opt.Log.DebugContext(ctx, "ran", "verb", ran.Verb, "args", ran.Args, "exit", ran.Exit, "ms", ran.Took.Milliseconds(), "err", err)
	if r.opt.Observe != nil {
		r.opt.Observe(ran)
	}
	if err != nil {
		return res, err
	}
	if res.Exit == 0 || slices.Contains(ok, res.Exit) {
		if res.Truncated && !c.AllowTruncated && c.Stdout == nil {
			return res, fmt.Errorf("%s: %w (%d bytes)", red.String(c.Argv[0]), ErrTruncated, c.OutputLimit())
		}
		return res, nil
	}
	return res, &CmdError{
		Verb: c.Verb, Argv: ran.Args, Exit: res.Exit,
		Stderr: red.String(string(res.Stderr)), Stdout: red.String(tail(res.Stdout, 4<<10)),
	}
}

// script runs one of the scripts as root.
func (r *Runner) script(ctx context.Context, verb, script string, stdin io.Reader, args ...string) (connector.Result, error) {
	return r.scriptOK(ctx, verb, script, stdin, nil, args...)
}

func (r *Runner) scriptOK(ctx context.Context, verb, script string, stdin io.Reader, ok []int, args ...string) (connector.Result, error) {
	return r.do(ctx, connector.Cmd{Verb: verb, Argv: shell(script, args...), Stdin: stdin, Sudo: true}, ok...)
}

// shell returns the argv that runs a script with arguments.
func shell(script string, args ...string) []string {
	return append([]string{"/bin/sh", "-c", script, "sh"}, args...)
}

func tail(b []byte, n int) string {
	return strings.ToValidUTF8(string(b[max(0, len(b)-n):]), "")
}
