package connector

import (
	"context"
	"fmt"
	"io"
	"time"
)

// copyBuffer is the size of the pieces in which input is sent. An SSH packet
// holds 32 KiB; larger pieces spare the reader calls.
const copyBuffer = 512 << 10

// Wire is what differs between one Conn and another when a command is run.
type Wire struct {
	Addr  string // what errors call the host
	Path  string // where programs are looked for; empty: SearchPath
	Sudo  *Sudo  // nil where the login is root's
	Start Start
}

// Execute is Conn.Exec for a wire that can start a command: it sees to the
// timeout, to sudo, and to what is kept of the output.
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
	start := func(ctx context.Context, argv []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
		return w.Start(ctx, Plainly(w.Path, argv), stdin, stdout, stderr)
	}
	var exit int
	var err error
	if c.Sudo && w.Sudo != nil {
		// sudo resets the environment: the command gets it again.
		exit, err = w.Sudo.Run(ctx, start, Plainly(w.Path, c.Argv), c.Stdin, out.Stdout(), out.Stderr())
	} else {
		exit, err = start(ctx, c.Argv, c.Stdin, out.Stdout(), out.Stderr())
	}
	res := out.Result(exit)
	if cause := context.Cause(ctx); cause != nil {
		return res, cause
	}
	return res, err
}

// Feed gives a command its input and closes it. When stdin fails, the input stays
// open and stop is called instead: else the command would take the part for the whole.
func Feed(in io.WriteCloser, stdin io.Reader, stop func(error)) {
	if stdin != nil {
		from := &reading{Reader: stdin}
		_, _ = io.CopyBuffer(in, from, make([]byte, copyBuffer)) // a command may end without reading all
		if from.err != nil {
			stop(fmt.Errorf("read the input: %w", from.err))
			return
		}
	}
	_ = in.Close()
}

// reading keeps the error of a reader apart from that of the writer beside it,
// and hides its WriteTo, which would choose a buffer of its own.
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
