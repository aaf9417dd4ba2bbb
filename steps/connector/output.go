package connector

import (
	"io"
	"sync"
)

// Head is a writer that stores the first Limit bytes written to it.
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

// Bytes returns the stored bytes, and whether more were written.
func (h *Head) Bytes() ([]byte, bool) { return h.buf, h.more }

// Tail is a writer that stores the last Limit bytes written to it.
type Tail struct {
	Limit int
	buf   []byte
}

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	// A buffer of twice the limit makes moving the bytes rare.
	if len(t.buf) > 2*t.Limit {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-t.Limit:]...)
	}
	return len(p), nil
}

// Bytes returns the stored bytes.
func (t *Tail) Bytes() []byte { return t.buf[max(0, len(t.buf)-t.Limit):] }

// Output receives the output of a command from a transport. It stores it for the Result,
// and copies it to the writers of the Cmd.
type Output struct {
	head Head
	tail Tail
	out  sink
	err  sink
}

// NewOutput returns the Output of c. It calls stop if a writer of c fails: the command must
// then be terminated.
func NewOutput(c Cmd, stop func(error)) *Output {
	o := &Output{head: Head{Limit: c.OutputLimit()}, tail: Tail{Limit: c.OutputLimit()}}
	o.out = sink{keep: &o.head, to: c.Stdout, fail: stop}
	o.err = sink{keep: &o.tail, to: c.Stderr, fail: stop}
	return o
}

// Stdout returns the writer for standard output.
func (o *Output) Stdout() io.Writer { return &o.out }

// Stderr returns the writer for standard error.
func (o *Output) Stderr() io.Writer { return &o.err }

// Result ends the output and returns the Result with the given exit status. Later writes are
// discarded, so that the caller may reuse the writers of the Cmd.
func (o *Output) Result(exit int) Result {
	o.out.end()
	o.err.end()
	out, more := o.head.Bytes()
	return Result{Exit: exit, Stdout: out, Stderr: o.tail.Bytes(), Truncated: more}
}

// sink reports write errors to fail and never returns them to the transport, which would
// stop reading and so block the command.
type sink struct {
	mu    sync.Mutex
	keep  io.Writer
	to    io.Writer // nil: no receiver, or the receiver has failed
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
