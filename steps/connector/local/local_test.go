package local_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/local"
	"github.com/mensylisir/kubexm/testdata/fair"
)

func sh(script string) connector.Cmd {
	return connector.Cmd{Verb: "test", Argv: []string{"/bin/sh", "-c", script}}
}

func TestExec(t *testing.T) {
	t.Setenv("KUBEXM_LEAK", "of this process")
	dir := t.TempDir()
	c := local.New(local.Config{Dir: dir})
	if c.Root() != (os.Geteuid() == 0) {
		t.Error("Root is not whether this is root")
	}
	var out bytes.Buffer
	cmd := sh(`pwd; echo "$LC_ALL $PATH $KUBEXM_LEAK"; cat; echo err >&2; exit 3`)
	cmd.Stdin, cmd.Stdout = strings.NewReader("in\n"), &out
	res, err := c.Exec(t.Context(), cmd)
	want := dir + "\nC " + connector.SearchPath + " \nin\n"
	if err != nil || res.Exit != 3 || string(res.Stdout) != want || out.String() != want || string(res.Stderr) != "err\n" {
		t.Errorf("%d %q %q %q %v", res.Exit, res.Stdout, out.String(), res.Stderr, err)
	}
	for script, exit := range map[string]int{"kill -TERM $$": 143, "kill -KILL $$": 137, "exit 7": 7, "true": 0} {
		if res, err := c.Exec(t.Context(), sh(script)); err != nil || res.Exit != exit {
			t.Errorf("%s: exit %d, %v; want %d", script, res.Exit, err, exit)
		}
	}
	if res, err := c.Exec(t.Context(), connector.Cmd{Argv: []string{"no-such-program"}}); err != nil || res.Exit != 127 {
		t.Errorf("a program that is missing: %+v, %v", res, err)
	}
	if _, err := c.Exec(t.Context(), connector.Cmd{}); err == nil {
		t.Error("no program at all was taken")
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestStreamsThatFail(t *testing.T) {
	c := local.New(local.Config{})
	broken := errors.New("the disk is broken")
	if _, err := c.Exec(t.Context(), connector.Cmd{Argv: []string{"cat"}, Stdin: io.MultiReader(strings.NewReader("part"), failing{broken})}); !errors.Is(err, broken) {
		t.Errorf("input: %v", err)
	}
	if _, err := c.Exec(t.Context(), connector.Cmd{Argv: []string{"cat", "/dev/zero"}, Stdout: failing{broken}}); !errors.Is(err, broken) {
		t.Errorf("output: %v", err)
	}
}

func TestEnds(t *testing.T) {
	for _, c := range []struct {
		name, script string
		how          func(*local.Conn, context.CancelCauseFunc)
		timeout      time.Duration
		want         func(error) bool
	}{
		{"timeout", "sleep 600", nil, 200 * time.Millisecond, func(err error) bool {
			var e *connector.TimeoutError
			return errors.As(err, &e)
		}},
		{"timeout of children", "sleep 600 & wait", nil, 200 * time.Millisecond, func(err error) bool {
			var e *connector.TimeoutError
			return errors.As(err, &e)
		}},
		{"context", "sleep 600", func(_ *local.Conn, stop context.CancelCauseFunc) { stop(io.ErrNoProgress) }, 0, func(err error) bool { return errors.Is(err, io.ErrNoProgress) }},
		{"will not stop", "trap '' TERM; while :; do sleep 0.1; done", func(_ *local.Conn, stop context.CancelCauseFunc) { stop(io.ErrNoProgress) }, 0, func(err error) bool { return errors.Is(err, io.ErrNoProgress) }},
		{"close", "sleep 600", func(c *local.Conn, _ context.CancelCauseFunc) { _ = c.Close() }, 0, func(err error) bool { return errors.Is(err, connector.ErrClosed) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			conn := local.New(local.Config{Dir: dir})
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			if c.how != nil {
				time.AfterFunc(200*time.Millisecond, func() { c.how(conn, stop) })
			}
			cmd := sh("echo $$ >pid; " + c.script)
			cmd.Timeout = c.timeout
			clock := fair.Start()
			if _, err := conn.Exec(ctx, cmd); !c.want(err) {
				t.Errorf("error is %v", err)
			}
			clock.Within(t, 8*time.Second)
			pid, err := os.ReadFile(filepath.Join(dir, "pid"))
			if err != nil {
				t.Fatal(err)
			}
			if b, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat"); err == nil && !strings.Contains(string(b), ") Z ") {
				t.Errorf("it still runs: %s", b)
			}
		})
	}
	c := local.New(local.Config{})
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Error(err)
	}
	if _, err := c.Exec(t.Context(), sh("true")); !errors.Is(err, connector.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestForward(t *testing.T) {
	var f connector.Forwarder = local.New(local.Config{})
	l, err := f.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			accepted <- c
		}
	}()
	out, err := f.Dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	in := <-accepted
	defer in.Close()
	if _, err := out.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	if _, err := io.ReadFull(in, b); err != nil || b[0] != 'x' {
		t.Errorf("%q, %v", b, err)
	}
}
