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

// DefaultLimit is the default of Cmd.Limit, in bytes.
const DefaultLimit = 1 << 20

// Cmd is one command.
type Cmd struct {
	// Verb identifies the operation ("fs.read"), for logs and for simulated hosts, which
	// do not interpret shell. See the Verb constants; empty means VerbExec.
	Verb string
	// Argv is the program and its arguments, never a shell line. No element may contain a
	// NUL byte.
	Argv []string
	// Stdin is the input of the command; nil means empty. It is read at most once. It is
	// not read after Exec has returned, except by a Read that Exec cannot interrupt.
	Stdin io.Reader
	// Verified means that the host compares Stdin with digests among the arguments. An audit
	// log need not hash it then. Transports ignore it.
	Verified bool
	// Stdout and Stderr receive the unredacted output while the command runs, each from
	// one goroutine. Nil means no receiver. An error of a writer ends the command, and
	// Exec returns it.
	Stdout, Stderr io.Writer
	// Sudo runs the command as root. It has no effect if the login user is root.
	Sudo bool
	// Secrets are values in Argv or in the output that must not be shown. A transport
	// never prints them, and never changes what it returns to the caller.
	Secrets []string
	// Timeout ends the command with a *TimeoutError. It is counted from the call of Exec.
	// 0 means that only the context ends it.
	Timeout time.Duration
	// Limit is the maximum number of bytes of each stream in the Result; 0 means
	// DefaultLimit.
	Limit int
	// AllowTruncated accepts truncated output: the first Limit bytes of Stdout are enough.
	// Without it the runner treats a truncated Result as an error. Transports ignore it.
	AllowTruncated bool
}

// Args returns the arguments of the command without their wrapping: the arguments of a
// script (/bin/sh -c script sh ARGS), or what follows "--", or else all of Argv after the
// program.
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

// Script returns the script that c runs and its arguments. ok is false if c does not run
// a script (/bin/sh -c script sh ARGS).
func (c Cmd) Script() (script string, args []string, ok bool) {
	if len(c.Argv) >= 4 && c.Argv[0] == "/bin/sh" && c.Argv[1] == "-c" {
		return c.Argv[2], c.Argv[4:], true
	}
	return "", nil, false
}

// Check returns an error if no transport can run c: an empty Argv, a NUL byte.
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

// OutputLimit returns the maximum number of bytes of each stream in the Result.
func (c Cmd) OutputLimit() int {
	if c.Limit > 0 {
		return c.Limit
	}
	return DefaultLimit
}

// Result is the result of a command. Exit is its exit status, or 128 plus the signal's
// number if a signal ended it, as in a shell.
type Result struct {
	Exit int
	// Stdout is the start of standard output, for parsers, and Stderr the end of standard
	// error, for people, each up to Cmd.Limit bytes.
	Stdout, Stderr []byte
	// Truncated means that standard output exceeded the limit.
	Truncated bool
}

// Conn is the connection to one host.
//
// Exec runs one command and waits for its end. An exit status other than 0 is a Result,
// not an error. An error means that there is no usable Result:
//   - the host was not reached; nothing was run
//   - *SudoError: sudo failed; nothing was run
//   - *BrokenError: the connection broke during the command; its effect is unknown
//   - *TimeoutError, or the context's error: the command was terminated; its effect is
//     unknown
//
// A Conn is safe for concurrent use. If the host limits the number of parallel commands,
// the others wait. After a connection broke, the next Exec reconnects.
type Conn interface {
	Exec(ctx context.Context, c Cmd) (Result, error)
	// Close ends the connection and every command on it. Later calls of Exec fail.
	Close() error
}

// Forwarder is implemented by a Conn that can forward TCP connections.
type Forwarder interface {
	// Dial connects from the host to an address. network is "tcp".
	Dial(ctx context.Context, network, address string) (net.Conn, error)
	// Listen accepts connections on the host. With port 0 the host chooses a port. The
	// listener ends with the connection.
	Listen(ctx context.Context, network, address string) (net.Listener, error)
}

// Elevated is implemented by a Conn that knows whether its commands run as root without
// sudo.
type Elevated interface {
	Root() bool
}
