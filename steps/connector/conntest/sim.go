package conntest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/mensylisir/kubexm/steps/connector"
)

// TB is the part of testing.TB that a Sim needs.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// Sim is a simulated host in memory. It is safe for concurrent use.
type Sim struct {
	t TB

	mu       sync.Mutex
	machine  Machine
	files    tree
	units    map[string]*unit
	sysctls  map[string]string
	boot     map[string]string            // the kernel's own settings
	keysOf   map[string]map[string]string // the settings that come with a module
	modules  map[string]string            // to loaded, builtin, available
	users    map[string]account
	groups   map[string]int
	packages map[string]pack
	locker   string // the holder of the package lock
	locked   int    // seconds
	forwards forwards
	jobs     map[string]*job
	leases   map[string]string // holders by path
	polls    int               // number of polls until a job has ended
	hostname string
	swaps    []swapArea
	ufw      bool
	// generated are the units that systemd's generators create at each boot: text by name.
	generated map[string]string
	boots     int
	calls     calls
	contents  *Contents
	handlers  []handler
	fault     Fault
	closed    bool
	disk      disk
}

// Fault describes how a connection breaks.
type Fault struct {
	// At is the number of the command at which it breaks; 1 is the next one, 0 means never.
	At int
	// After breaks the connection after the command has taken effect, and not before.
	After bool
	// Stay keeps the host unreachable until Mend.
	Stay bool
}

// Handler runs a command instead of the Sim. It may change the Sim with its methods. If ok
// is false, the next handler is called.
type Handler func(c connector.Cmd, stdin []byte) (res connector.Result, ok bool)

type handler struct {
	match func(connector.Cmd) bool
	do    Handler
}

// New returns a host with the folders and kernel settings of an empty Debian. An unknown
// command fails t; if t is nil, it only returns an error.
func New(t TB) *Sim {
	s := &Sim{
		t: t, machine: DefaultMachine(),
		files: newTree(), units: map[string]*unit{}, modules: map[string]string{}, packages: map[string]pack{}, generated: map[string]string{},
		jobs: map[string]*job{}, polls: jobPolls, hostname: "node1", boots: 1, contents: NewContents(),
	}
	s.initFiles()
	s.initKernel()
	s.initUsers()
	return s
}

// Exec runs one command; see connector.Conn.
func (s *Sim) Exec(ctx context.Context, c connector.Cmd) (connector.Result, error) {
	if c.Verb == "" {
		c.Verb = connector.VerbExec
	}
	if err := errors.Join(c.Check(), ctx.Err()); err != nil {
		return connector.Result{}, err
	}
	if c.Verb == connector.VerbLease {
		return s.hold(ctx, c)
	}
	// Read stdin before locking the host: it may be slow, or come from another host.
	var stdin []byte
	if c.Stdin != nil {
		var err error
		if stdin, err = s.sharedContents().read(c.Stdin); err != nil {
			return connector.Result{}, fmt.Errorf("read the input: %w", err)
		}
	}
	breaks, err := s.begin(c)
	if err != nil {
		return connector.Result{}, s.note(c, 0, err)
	}
	res, err := s.answer(c, stdin)
	if err == nil && breaks {
		err = broken(c)
	}
	if err != nil {
		return connector.Result{}, s.note(c, 0, err)
	}
	return s.deliver(c, res)
}

// deliver returns the result as a transport does: through the command's writers, and
// within its limit.
func (s *Sim) deliver(c connector.Cmd, res connector.Result) (connector.Result, error) {
	if limit := c.OutputLimit(); c.Stdout == nil && c.Stderr == nil && len(res.Stdout) <= limit && len(res.Stderr) <= limit {
		_ = s.note(c, res.Exit, nil) // returns its nil
		return connector.Result{Exit: res.Exit, Stdout: slices.Clip(res.Stdout), Stderr: slices.Clip(res.Stderr)}, nil
	}
	var failed error
	out := connector.NewOutput(c, func(err error) { failed = err })
	_, _ = out.Stdout().Write(res.Stdout) // tells failed
	_, _ = out.Stderr().Write(res.Stderr)
	_ = s.note(c, res.Exit, failed)
	return out.Result(res.Exit), failed
}

// begin counts the command, and reports whether the connection breaks before or after it.
func (s *Sim) begin(c connector.Cmd) (after bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false, connector.ErrClosed
	}
	if s.fault.At == 0 {
		return false, nil
	}
	if s.fault.At > 1 {
		s.fault.At--
		return false, nil
	}
	s.forwards.closeAll()
	after = s.fault.After
	if !s.fault.Stay {
		s.fault = Fault{}
	} else {
		s.fault.After = false
	}
	if after {
		return true, nil
	}
	return false, broken(c)
}

func broken(c connector.Cmd) error {
	return &connector.BrokenError{Addr: "sim", Verb: c.Verb, Err: io.ErrUnexpectedEOF}
}

func (s *Sim) note(c connector.Cmd, exit int, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls.add(c, exit, err)
	return err
}

// answer finds the implementation of a command and calls it.
func (s *Sim) answer(c connector.Cmd, stdin []byte) (connector.Result, error) {
	s.mu.Lock()
	handlers := s.handlers // others may be added, but these stay
	s.mu.Unlock()
	for _, h := range slices.Backward(handlers) { // the newest first
		if h.match(c) {
			if res, ok := h.do(c, stdin); ok { // not locked: it may use the Sim
				s.mu.Lock()
				defer s.mu.Unlock()
				s.wrote(c)
				return res, nil
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range []func(connector.Cmd, []byte) (connector.Result, bool){s.doSync, s.doFile, s.doTree, s.doUnit, s.doNode, s.doSystem, s.doPackage, s.doJob} {
		if res, ok := known(c, stdin); ok {
			s.wrote(c)
			return res, nil
		}
	}
	err := fmt.Errorf("sim: nothing is scripted for %s", Call{Verb: c.Verb, Argv: c.Argv, Args: c.Args()})
	if s.t != nil {
		s.t.Helper()
		s.t.Errorf("%v", err)
	}
	return connector.Result{}, err
}

// Close makes Exec fail from now on.
func (s *Sim) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// Script sets the result of a program that is called with exactly this argv.
func (s *Sim) Script(res connector.Result, argv ...string) {
	s.Handle(func(c connector.Cmd) bool { return c.Verb == connector.VerbExec && slices.Equal(c.Argv, argv) },
		func(connector.Cmd, []byte) (connector.Result, bool) {
			own := res // whoever runs it may change what it gets
			own.Stdout, own.Stderr = bytes.Clone(res.Stdout), bytes.Clone(res.Stderr)
			return own, true
		})
}

// HandleProgram sets the handler of all calls of a program.
func (s *Sim) HandleProgram(program string, do Handler) {
	s.Handle(func(c connector.Cmd) bool { return c.Verb == connector.VerbExec && c.Argv[0] == program }, do)
}

// Fail makes a verb with this first argument fail with an exit status and a message. An
// empty arg matches any argument.
func (s *Sim) Fail(verb, arg string, exit int, stderr string) {
	s.Handle(func(c connector.Cmd) bool {
		args := c.Args()
		return c.Verb == verb && (arg == "" || len(args) > 0 && args[0] == arg)
	}, func(connector.Cmd, []byte) (connector.Result, bool) {
		return connector.Result{Exit: exit, Stderr: []byte(stderr)}, true
	})
}

// Handle sets the handler of all commands for which match returns true. Handlers that were
// added later take precedence.
func (s *Sim) Handle(match func(connector.Cmd) bool, do Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers = append(s.handlers, handler{match, do})
}

// Break makes the connection break, counted from the next command.
func (s *Sim) Break(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Mend makes the host reachable again.
func (s *Sim) Mend() { s.Break(Fault{}) }

// Calls returns the commands so far.
func (s *Sim) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls.list()
}

// ForgetCalls clears the list that Calls returns.
func (s *Sim) ForgetCalls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = calls{}
}

func exits(code int, stderr string, args ...any) (connector.Result, bool) {
	res := connector.Result{Exit: code}
	if stderr != "" {
		res.Stderr = []byte(fmt.Sprintf(stderr, args...) + "\n")
	}
	return res, true
}

func says(format string, args ...any) (connector.Result, bool) {
	return connector.Result{Stdout: []byte(fmt.Sprintf(format, args...))}, true
}
