package connector

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"time"
)

// copyBuffer is the buffer size for sending input. An SSH packet contains at most 32 KiB; a
// larger buffer saves calls of Read.
const copyBuffer = 512 << 10

// Wire is the transport-specific part of running a command.
type Wire struct {
	Addr  string // name of the host in errors
	Path  string // PATH of commands; empty: SearchPath
	Sudo  *Sudo  // nil if the login user is root
	Start Start
	// Lingers means that a command may continue after Start was canceled.
	Lingers bool
	// Reached reports whether the command was sent to the host: otherwise it need not be
	// terminated. Nil means that every started command was sent.
	Reached func() bool
}

// Execute implements Conn.Exec for a transport that can start a command. It handles the
// timeout, sudo, the stored output, and the termination of a canceled command.
func (w Wire) Execute(ctx context.Context, c Cmd) (Result, error) {
	if err := c.Check(); err != nil {
		return Result{}, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if c.Timeout > 0 {
		after := &TimeoutError{Addr: w.Addr, Verb: c.Verb, After: c.Timeout}
		timer := time.AfterFunc(c.Timeout, func() { stop(after) })
		defer timer.Stop()
	}
	out := NewOutput(c, stop)
	mark := rand.Text()
	began := false
	start := func(ctx context.Context, argv []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
		began = true
		return w.Start(ctx, withEnvironment(w.Path, mark, argv), stdin, stdout, stderr)
	}
	asRoot := c.Sudo && w.Sudo != nil
	var exit int
	var err error
	if asRoot {
		// sudo resets the environment, so it is set again inside.
		exit, err = w.Sudo.Run(ctx, start, withEnvironment(w.Path, mark, c.Argv), c.Stdin, out.Stdout(), out.Stderr())
	} else {
		exit, err = start(ctx, c.Argv, c.Stdin, out.Stdout(), out.Stderr())
	}
	res := out.Result(exit)
	cause := context.Cause(ctx)
	if cause == nil {
		return res, err
	}
	if began && err != nil && (w.Lingers || asRoot) && (w.Reached == nil || w.Reached()) {
		w.end(ctx, mark, asRoot)
	}
	return res, cause
}

// Feed copies stdin to a command's input and closes it. If stdin fails, Feed calls stop and
// leaves the input open: otherwise the command would treat the partial input as complete.
func Feed(in io.WriteCloser, stdin io.Reader, stop func(error)) {
	if stdin != nil {
		from := &reading{Reader: stdin}
		_, _ = io.CopyBuffer(in, from, make([]byte, copyBuffer)) // a command may end before it has read all input
		if from.err != nil {
			stop(fmt.Errorf("read the input: %w", from.err))
			return
		}
	}
	_ = in.Close()
}

// reading records the errors of a reader separately from those of the writer. It also hides
// the reader's WriteTo, which would use another buffer.
type reading struct {
	io.Reader
	err error
}

func (r *reading) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}
