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

// Options are what a Runner works with beside its connection.
type Options struct {
	// Redactor knows the secrets of this cluster. nil knows none.
	Redactor *connector.Redactor
	// Log gets one line per command at debug level: verb, arguments, exit, time.
	// nil logs nothing.
	Log *slog.Logger
	// AsLogin runs everything as the user who logged in, not as root.
	AsLogin bool
	// Observe is told of every command when it ended, in the goroutine that ran
	// it. nil tells nobody. It is for audit trails: Argv is redacted.
	Observe func(Ran)
	// Patience is how long a command may take that has no timeout of its own, where the
	// context has no deadline either; 0 means 10 minutes.
	Patience time.Duration
}

// longest is how long a command may take where nobody says how long.
const longest = 10 * time.Minute

// Ran is one command that was run.
type Ran struct {
	Verb string
	Args []string // connector.Cmd.Args, redacted
	Exit int      // -1 when Err is set
	Err  error
	Took time.Duration
}

// Runner does things on one host. It is safe for concurrent use.
type Runner struct {
	conn connector.Conn
	opt  Options

	mu     sync.Mutex
	sealed map[string]sealed // by path
}

// New gives a Runner over conn. It does not own conn: who made it closes it.
func New(conn connector.Conn, opt Options) *Runner {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	return &Runner{conn: conn, opt: opt, sealed: map[string]sealed{}}
}

// AsLogin gives a Runner over the same connection that runs everything as the user
// who logged in.
func (r *Runner) AsLogin() *Runner {
	o := r.opt
	o.AsLogin = true
	return New(r.conn, o)
}

// Conn gives the connection, for what Runner has no method for (a
// connector.Forwarder).
func (r *Runner) Conn() connector.Conn { return r.conn }

// Cmd is one program to run.
type Cmd struct {
	Argv    []string
	Stdin   io.Reader
	Timeout time.Duration // 0: only the context ends it
	// AsLogin runs it as the user who logged in, not as root.
	AsLogin bool
	// Secrets are masked in errors and logs, beside those that the Runner knows.
	Secrets []string
	// Output gets standard output and error as they come, redacted. Lines of the
	// two may mix, bytes of a write do not.
	Output io.Writer
	// Stdout gets the standard output as it is: for what is large.
	Stdout io.Writer
	// OK are exit statuses that are no error, beside 0.
	OK []int
	// Limit is how many bytes of the standard output the Result holds; 0 means
	// connector.DefaultLimit. More than that is ErrTruncated, unless Cut says that the
	// beginning is enough, or Stdout gets all of it.
	Limit int
	Cut   bool
}

// Exec runs argv as root and gives its standard output, as it is. Another exit
// status than 0 is a *CmdError; more than connector.DefaultLimit bytes are ErrTruncated.
func (r *Runner) Exec(ctx context.Context, argv ...string) ([]byte, error) {
	res, err := r.Run(ctx, Cmd{Argv: argv})
	return res.Stdout, err
}

// scriptMerged has one stream of a program's two.
const scriptMerged = `exec "$@" 2>&1`

// Merged is Exec with what the program writes to its standard error among its output, in
// the order in which it writes. An output that is too long is cut.
func (r *Runner) Merged(ctx context.Context, argv ...string) ([]byte, error) {
	res, err := r.do(ctx, connector.Cmd{Verb: connector.VerbExec, Argv: shell(scriptMerged, argv...), Sudo: true, Cut: true})
	return res.Stdout, err
}

// Run runs c. Another exit status than 0 or one of c.OK is a *CmdError, and the
// Result comes along.
func (r *Runner) Run(ctx context.Context, c Cmd) (connector.Result, error) {
	cc := connector.Cmd{
		Verb: connector.VerbExec, Argv: c.Argv, Stdin: c.Stdin, Timeout: c.Timeout,
		Secrets: c.Secrets, Limit: c.Limit, Cut: c.Cut, Sudo: !c.AsLogin, Stdout: c.Stdout,
	}
	if c.Output == nil {
		return r.do(ctx, cc, c.OK...)
	}
	red := r.opt.Redactor.With(c.Secrets...)
	both := &together{w: c.Output}
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

// do runs c and turns exit statuses that are not expected into a *CmdError.
func (r *Runner) do(ctx context.Context, c connector.Cmd, ok ...int) (connector.Result, error) {
	if r.opt.AsLogin {
		c.Sudo = false
	}
	if _, ends := ctx.Deadline(); !ends && c.Timeout == 0 && c.Verb != connector.VerbLease { // a lease lasts as long as its holder
		c.Timeout = cmp.Or(r.opt.Patience, longest)
	}
	red := r.opt.Redactor.With(c.Secrets...)
	began := time.Now()
	res, err := r.conn.Exec(ctx, c)
	ran := Ran{Verb: c.Verb, Args: red.Argv(c.Args()), Exit: res.Exit, Err: err, Took: time.Since(began)}
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
		if res.Truncated && !c.Cut && c.Stdout == nil {
			return res, fmt.Errorf("%s: %w (%d bytes)", red.String(c.Argv[0]), ErrTruncated, c.Keep())
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

// shell is how a script gets its arguments.
func shell(script string, args ...string) []string {
	return append([]string{"/bin/sh", "-c", script, "sh"}, args...)
}

func tail(b []byte, n int) string {
	return strings.ToValidUTF8(string(b[max(0, len(b)-n):]), "")
}
