package connector

import (
	"context"
	"crypto/rand"
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
	// Lingers says that a command may go on when Start gave it up.
	Lingers bool
	// Reached tells whether a command was handed to the far side: what never got
	// there need not be ended. nil: each that was started.
	Reached func() bool
}

// Execute is Conn.Exec for a wire that can start a command: it sees to the
// timeout, to sudo, to what is kept of the output, and to the end of a command
// that was given up.
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
		return w.Start(ctx, plainly(w.Path, mark, argv), stdin, stdout, stderr)
	}
	asRoot := c.Sudo && w.Sudo != nil
	var exit int
	var err error
	if asRoot {
		// sudo resets the environment: the command gets it again.
		exit, err = w.Sudo.Run(ctx, start, plainly(w.Path, mark, c.Argv), c.Stdin, out.Stdout(), out.Stderr())
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
