package connector

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"time"
)

// DefaultLimit is how many bytes of each output stream a Result keeps when Cmd
// sets no limit of its own.
const DefaultLimit = 1 << 20

// Cmd is one command.
type Cmd struct {
	// Verb names what was meant ("fs.read"): logs read well, and a simulated
	// host need not understand shell. See the Verb constants; empty means VerbExec.
	Verb string
	// Argv is the program and its arguments, never a shell line. No element may
	// hold a NUL byte.
	Argv []string
	// Stdin is what the command reads; nil is empty. It is read at most once,
	// and not after Exec returned, unless a Read that Exec cannot interrupt is
	// still under way then.
	Stdin io.Reader
	// SHA256 is what the bytes of Stdin are said to hash to, in hexadecimal, by who
	// has them hashed on the host as well: whoever keeps account of commands need not
	// hash them here. No wire looks at it.
	SHA256 string
	// Stdout and Stderr get the output as it comes, each from one goroutine, as
	// it is: nothing is redacted here. nil means that nobody listens. A writer
	// that fails ends the command, and its error is Exec's.
	Stdout, Stderr io.Writer
	// Sudo runs the command as root. It means nothing where the login is root's.
	Sudo bool
	// Secrets are values in Argv or in the output that must not be shown. A wire
	// never prints them; it also never changes what it hands to the caller.
	Secrets []string
	// Timeout ends the command after this time, counted from when it was handed
	// over, with a *TimeoutError. 0 means that only the context ends it.
	Timeout time.Duration
	// Limit is how many bytes of each stream the Result keeps; 0 means DefaultLimit.
	Limit int
	// Cut says that the first Limit bytes of Stdout are all that is wanted. Without it
	// the runner takes a Result that is Truncated for an error; no wire looks at it.
	Cut bool
}

// Args gives what the command works on, without what carries it there: the
// arguments of a script (/bin/sh -c script sh ARGS), what follows "--", or else
// all of Argv after the program.
func (c Cmd) Args() []string {
	if _, args, ok := c.Script(); ok {
		return args
	}
	if i := slices.Index(c.Argv, "--"); i >= 0 {
		return c.Argv[i+1:]
	}
	if len(c.Argv) == 0 {
		return nil
	}
	return c.Argv[1:]
}

// Script gives the script that c runs, and its arguments, where it runs one
// (/bin/sh -c script sh ARGS).
func (c Cmd) Script() (script string, args []string, ok bool) {
	if len(c.Argv) >= 4 && c.Argv[0] == "/bin/sh" && c.Argv[1] == "-c" {
		return c.Argv[2], c.Argv[4:], true
	}
	return "", nil, false
}

// Check tells what no wire can carry: an empty Argv, a NUL byte.
func (c Cmd) Check() error {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return errors.New("command without a program")
	}
	for _, a := range c.Argv {
		if strings.IndexByte(a, 0) >= 0 {
			return errors.New("command with a NUL byte in an argument")
		}
	}
	return nil
}

// Keep gives how many bytes of each stream are kept.
func (c Cmd) Keep() int {
	if c.Limit > 0 {
		return c.Limit
	}
	return DefaultLimit
}

// Result is how a command ended. Exit is its status; a command that a signal
// ended has 128 plus the signal's number, as in a shell.
type Result struct {
	Exit int
	// Stdout is the start of the output and Stderr the end of it, each up to
	// Cmd.Limit bytes: a parser needs the first, a person the last.
	Stdout, Stderr []byte
	// Truncated says that there was more on Stdout than was kept.
	Truncated bool
}

// Conn is the way to one host.
//
// Exec runs one command and waits for its end. That the command exits with
// another status than 0 is a Result, not an error; an error means that there is
// no Result to go by: the host was not reached (then it says why, and nothing was
// run), the connection broke under the command (*BrokenError: it may or may not
// have taken effect), sudo refused (*SudoError: nothing was run), or time ran out
// or the context ended (the command was told to stop, its effect is unknown).
//
// A Conn is safe for concurrent use; where the far side takes only so many
// commands at a time, the others wait. After a connection broke the next Exec
// makes a new one.
type Conn interface {
	Exec(ctx context.Context, c Cmd) (Result, error)
	// Close ends the connection and every command on it. Exec fails from then on.
	Close() error
}

// Forwarder is what a Conn may also be: a way for TCP through it.
type Forwarder interface {
	// Dial connects from the far side to an address as seen from there.
	// network is "tcp".
	Dial(ctx context.Context, network, address string) (net.Conn, error)
	// Listen accepts connections on the far side; port 0 lets it choose. The
	// listener ends with the connection.
	Listen(ctx context.Context, network, address string) (net.Listener, error)
}

// Elevated is what a Conn may also be: able to say whether its commands run as
// root without sudo.
type Elevated interface {
	Root() bool
}
