package connector

import (
	"io"
	"sync"
)

// Head is a writer that keeps the first Limit bytes of what it gets.
type Head struct {
	Limit int
	buf   []byte
	more  bool
}

// Write never fails.
func (h *Head) Write(p []byte) (int, error) {
	n := min(len(p), h.Limit-len(h.buf))
	h.buf = append(h.buf, p[:n]...)
	h.more = h.more || n < len(p)
	return len(p), nil
}

// Bytes gives what was kept, and whether there was more.
func (h *Head) Bytes() ([]byte, bool) { return h.buf, h.more }

// Tail is a writer that keeps the last Limit bytes of what it gets.
type Tail struct {
	Limit int
	buf   []byte
}

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	// Room for twice the limit makes moving the bytes rare.
	if len(t.buf) > 2*t.Limit {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-t.Limit:]...)
	}
	return len(p), nil
}

// Bytes gives what was kept.
func (t *Tail) Bytes() []byte { return t.buf[max(0, len(t.buf)-t.Limit):] }

// Output is where a wire puts what a command prints: into a Result, and to the
// command's own writers.
type Output struct {
	head Head
	tail Tail
	out  sink
	err  sink
}

// NewOutput gives the place for c's output. stop is called when a writer of c's
// fails: the command has to be ended then.
func NewOutput(c Cmd, stop func(error)) *Output {
	o := &Output{head: Head{Limit: c.Keep()}, tail: Tail{Limit: c.Keep()}}
	o.out = sink{keep: &o.head, to: c.Stdout, fail: stop}
	o.err = sink{keep: &o.tail, to: c.Stderr, fail: stop}
	return o
}

// Stdout takes the standard output.
func (o *Output) Stdout() io.Writer { return &o.out }

// Stderr takes the standard error.
func (o *Output) Stderr() io.Writer { return &o.err }

// Result ends the output and gives what was kept, with the given exit status.
// What is written later goes nowhere, so the command's own writers are the
// caller's again.
func (o *Output) Result(exit int) Result {
	o.out.end()
	o.err.end()
	out, more := o.head.Bytes()
	return Result{Exit: exit, Stdout: out, Stderr: o.tail.Bytes(), Truncated: more}
}

// sink never fails towards the wire, which would stop reading and so hang the
// command: it tells fail instead.
type sink struct {
	mu    sync.Mutex
	keep  io.Writer
	to    io.Writer // nil: nobody listens, or no longer
	fail  func(error)
	ended bool
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return len(p), nil
	}
	_, _ = s.keep.Write(p) // never fails
	if s.to != nil {
		if _, err := s.to.Write(p); err != nil {
			s.to = nil
			s.fail(err)
		}
	}
	return len(p), nil
}

func (s *sink) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}
