package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/connector/sshtest"
	"github.com/mensylisir/kubexm/steps/runner"
)

// host is a simulated machine behind an SSH server of its own. What runs on it
// ends with a boot, and not with the process that asked for it.
type host struct {
	name   string
	sim    *conntest.Sim
	server *sshtest.Server
	wire   *tcpProxy
	dial   func(address string) (net.Conn, error) // from the host to one of its own ports

	mu      sync.Mutex
	on      context.Context //nolint:containedctx // what runs on the host lasts as long as its boot
	off     context.CancelFunc
	jobs    map[string]*hostJob
	leases  map[string]*hostLease
	by      map[string]context.CancelFunc // commands that run, by their mark
	lives   map[string]context.Context    // of programs, the last of each
	unknown []string                      // what nobody taught it
	full    bool                          // the disk
	ran     int                           // commands so far
	strike  func(n int)                   // told of each command before it runs; may be nil
	heard   func(line string)             // told of each command line as it came, environment and all; may be nil
}

// loginPassword lets kubexm in.
const loginPassword = "let-me-in"

// newHost starts a machine; it listens at address.
func newHost(name, address string, sim *conntest.Sim) (*host, error) {
	h := &host{name: name, sim: sim, jobs: map[string]*hostJob{}, leases: map[string]*hostLease{}, by: map[string]context.CancelFunc{},
		lives: map[string]context.Context{}}
	h.on, h.off = context.WithCancel(context.Background())
	sim.Handle(func(c connector.Cmd) bool { return strings.HasPrefix(c.Verb, "job.") }, h.job)
	sim.Handle(func(c connector.Cmd) bool { return slices.Contains(growing, c.Verb) }, h.noSpace)
	var err error
	h.server, err = sshtest.Serve(sshtest.Config{
		Password: loginPassword, Run: h.run, NoSignals: true,
		Dial: func(_ context.Context, _, to string) (net.Conn, error) { return h.dial(to) },
	})
	if err != nil {
		return nil, err
	}
	if h.wire, err = newTCPProxy(address, h.server.Addr); err != nil {
		h.server.Close()
	}
	return h, err
}

func (h *host) close() {
	h.wire.close()
	h.off()
	h.server.Close()
}

// run carries out a command line as it comes over the wire.
func (h *host) run(ctx context.Context, line string, stdin io.Reader, stdout, stderr io.Writer) int {
	h.mu.Lock()
	heard := h.heard
	h.mu.Unlock()
	if heard != nil {
		heard(line)
	}
	argv, err := words(strings.TrimPrefix(line, "exec "))
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	mark := ""
	if len(argv) > 0 && argv[0] == "/usr/bin/env" {
		for argv = argv[1:]; len(argv) > 0 && strings.Contains(argv[0], "="); argv = argv[1:] {
			if m, ok := strings.CutPrefix(argv[0], "KUBEXM_COMMAND="); ok {
				mark = m
			}
		}
	}
	if len(argv) == 5 && strings.Contains(argv[2], "KUBEXM_COMMAND=$1") { // ends what a command has left
		h.end(argv[4])
		return 0
	}
	h.mu.Lock()
	alive, end := context.WithCancel(h.on)
	h.by[mark] = end
	h.ran++
	n, strike := h.ran, h.strike
	h.mu.Unlock()
	defer func() {
		end()
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.by, mark)
	}()
	if strike != nil {
		strike(n)
	}
	c := connector.Cmd{Verb: runner.VerbOf(argv), Argv: argv, Sudo: true}
	if c.Verb == connector.VerbExec { // a program ends when it prints and nobody is there to read
		defer context.AfterFunc(ctx, end)()
		h.running(alive, argv[0]) //nolint:contextcheck // it lasts as the host does
	}
	if c.Verb == connector.VerbLease {
		return h.hold(ctx, alive, c, stdin, stdout)
	}
	input, whole := readWhile(alive, stdin) //nolint:contextcheck // as above
	if !whole {                             // it was killed, or the power went, while it read: half of it is there
		switch args := c.Args(); c.Verb {
		case connector.VerbWrite:
			h.halfWritten(args[0], input)
		case connector.VerbPut:
			for f := range slices.Chunk(args[3:], 3) {
				size, err := strconv.Atoi(f[1])
				if err != nil || size > len(input) {
					size = len(input)
				}
				h.halfWritten(path.Join(args[0], f[0]), input[:size])
				if input = input[size:]; len(input) == 0 {
					break
				}
			}
		}
		return 137
	}
	c.Stdin = bytes.NewReader(input)
	res, err := h.sim.Exec(context.WithoutCancel(alive), c) //nolint:contextcheck // as above
	if err != nil {
		h.mu.Lock()
		h.unknown = append(h.unknown, err.Error())
		h.mu.Unlock()
		fmt.Fprintln(stderr, err)
		return 127
	}
	if alive.Err() != nil {
		return 137
	}
	_, _ = stdout.Write(res.Stdout) // who asked may be gone
	_, _ = stderr.Write(res.Stderr)
	return res.Exit
}

// halfWritten leaves what a write had received when it was ended.
func (h *host) halfWritten(p string, content []byte) {
	h.sim.AddFile(path.Join(path.Dir(p), "."+path.Base(p)+".kubexm-new"), string(content), 0o600)
}

// readWhile reads to the end, or until ctx ends.
func readWhile(ctx context.Context, r io.Reader) (b []byte, whole bool) {
	var buf bytes.Buffer
	var mu sync.Mutex
	done := make(chan struct{})
	go func() {
		defer close(done)
		piece := make([]byte, 64<<10)
		for {
			n, err := r.Read(piece)
			mu.Lock()
			buf.Write(piece[:n])
			mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	select {
	case <-done:
		whole = ctx.Err() == nil
	case <-ctx.Done():
	}
	mu.Lock()
	defer mu.Unlock()
	return bytes.Clone(buf.Bytes()), whole
}

// end kills the command of a mark; of every mark where it is empty.
func (h *host) end(mark string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for m, cancel := range h.by {
		if mark == "" || m == mark {
			cancel()
		}
	}
}

// onStrike has f told of each command before it runs, and counts them anew.
func (h *host) onStrike(f func(n int)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ran, h.strike = 0, f
}

// asked gives how many commands there were since the last onStrike.
func (h *host) asked() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ran
}

// said gives what the host was asked and does not know.
func (h *host) said() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.unknown)
}

// quiet waits until nobody is connected any more: what a killed process had
// begun has ended then.
func (h *host) quiet(ctx context.Context) error {
	for range 500 {
		if h.server.Open() == 0 {
			return nil
		}
		wait(ctx, 10*time.Millisecond)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return fmt.Errorf("host %s still has %d connections", h.name, h.server.Open())
}

// words takes a line apart that connector.Quote made.
func words(line string) ([]string, error) {
	var out []string
	var b strings.Builder
	quoted, some := false, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\'':
			quoted, some = !quoted, true
		case quoted:
			b.WriteByte(c)
		case c == '\\' && i+1 < len(line):
			i++
			b.WriteByte(line[i])
			some = true
		case c == ' ':
			if some {
				out = append(out, b.String())
			}
			b.Reset()
			some = false
		default:
			b.WriteByte(c)
			some = true
		}
	}
	if quoted {
		return nil, fmt.Errorf("a quote without an end in %q", line)
	}
	if some {
		out = append(out, b.String())
	}
	return out, nil
}
