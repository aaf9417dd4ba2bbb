package ssh_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/ssh"
	"github.com/mensylisir/kubexm/steps/connector/sshtest"
	"github.com/mensylisir/kubexm/testdata/fair"
)

func sh(script string) connector.Cmd {
	return connector.Cmd{Verb: "test", Argv: []string{"/bin/sh", "-c", script}}
}

// eventually waits for something that another process does.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("waited in vain: %s", what)
}

func exists(path string) func() bool {
	return func() bool { _, err := os.Stat(path); return err == nil }
}

func TestOneConnectionManyCommands(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Config{Password: "secret"})
	c := open(t, config(t, s))
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			res, err := c.Exec(t.Context(), connector.Cmd{Argv: []string{"echo", strconv.Itoa(i)}})
			if err != nil || string(res.Stdout) != fmt.Sprintln(i) {
				t.Errorf("%d: %q, %v", i, res.Stdout, err)
			}
		})
	}
	wg.Wait()
	if n := s.Connections(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	if _, most := s.Sessions(); most > ssh.DefaultMaxSessions {
		t.Errorf("%d sessions at a time, want at most %d", most, ssh.DefaultMaxSessions)
	}
}

// TestServerTakesFewSessions: MaxSessions of sshd is respected also where it is
// lower than ours: the commands wait, none fails.
func TestServerTakesFewSessions(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Config{Password: "secret", MaxSessions: 3})
	c := open(t, config(t, s))
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if res, err := c.Exec(t.Context(), sh("sleep 0.05")); err != nil || res.Exit != 0 {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
	wg.Wait()
	if _, most := s.Sessions(); most != 3 {
		t.Errorf("%d sessions at a time, want 3", most)
	}
}

func TestWaitingForAPlaceEnds(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Config{Password: "secret"})
	cfg := config(t, s)
	cfg.MaxSessions = 1
	c := open(t, cfg)
	ctx, stop := context.WithCancel(t.Context())
	started := filepath.Join(s.Dir, "started")
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := c.Exec(ctx, sh("touch started; sleep 30")); !errors.Is(err, context.Canceled) {
			t.Errorf("the first: %v", err)
		}
	})
	eventually(t, "the first command", exists(started))
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Exec(short, sh("true")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the one that waits: %v", err)
	}
	stop()
	wg.Wait()
	says(t, c, "echo free", "free")
}

func TestBrokenAndAgain(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Config{Password: "secret"})
	cfg := config(t, s)
	log, text := logger()
	cfg.Log = log
	c := open(t, cfg)
	done := make(chan error, 1)
	go func() {
		_, err := c.Exec(t.Context(), sh("touch started; sleep 30"))
		done <- err
	}()
	eventually(t, "the command", exists(filepath.Join(s.Dir, "started")))
	s.Drop()
	err := <-done
	var broken *connector.BrokenError
	if !errors.As(err, &broken) || broken.Verb != "test" || broken.Addr != s.Addr || broken.Advice() == "" {
		t.Fatalf("error is %v, want a BrokenError", err)
	}
	says(t, c, "echo again", "again")
	if n := s.Connections(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
	if !strings.Contains(text.String(), "connected again") {
		t.Errorf("the log says nothing of it: %s", text)
	}
	// A connection that broke while nobody used it costs nothing.
	s.Drop()
	says(t, c, "echo quietly", "quietly")
}

// TestSilence: a host whose cable was pulled is found out, and those who wait
// for it are told.
func TestSilence(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Config{Password: "secret"})
	cfg := config(t, s)
	// Long enough that a busy machine's answers come in time.
	cfg.Keepalive, cfg.DeadAfter = 100*time.Millisecond, 2*time.Second
	c := open(t, cfg)
	says(t, c, "sleep 3; echo slow", "slow") // longer than DeadAfter: keepalives are answered
	if n := s.Connections(); n != 1 {
		t.Fatalf("%d connections: a living one was given up", n)
	}
	done := make(chan error, 2)
	for _, cmd := range []connector.Cmd{
		sh("touch started1; sleep 300"),
		// An upload that fills all buffers does not hide it.
		{Verb: "test", Argv: []string{"/bin/sh", "-c", "touch started2; cat >/dev/null"}, Stdin: endless{}},
	} {
		go func() {
			_, err := c.Exec(t.Context(), cmd)
			done <- err
		}()
	}
	eventually(t, "the commands", func() bool {
		return exists(filepath.Join(s.Dir, "started1"))() && exists(filepath.Join(s.Dir, "started2"))()
	})
	clock := fair.Start()
	s.Silence()
	for range 2 {
		err := <-done
		var broken *connector.BrokenError
		if !errors.As(err, &broken) || !strings.Contains(err.Error(), "stopped responding") {
			t.Errorf("error is %v", err)
		}
	}
	clock.Within(t, 5*time.Second)
	s.Speak()
	says(t, c, "echo again", "again")
}

func TestDefaultsFindTheDeadInTime(t *testing.T) {
	if found := ssh.DefaultDeadAfter + ssh.DefaultKeepalive; found > 30*time.Second {
		t.Errorf("a dead host is found after %s, want 30 s at most", found)
	}
}

// endless gives zeros for ever.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

func TestTimeoutEndsTheCommand(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Config{Password: "secret"})
	c := open(t, config(t, s))
	cmd := sh("echo $$ >pid; echo out; sleep 300 & wait")
	cmd.Timeout = 500 * time.Millisecond
	clock := fair.Start()
	_, err := c.Exec(t.Context(), cmd)
	var late *connector.TimeoutError
	if !errors.As(err, &late) || late.After != cmd.Timeout || !late.Timeout() {
		t.Fatalf("error is %v, want a TimeoutError", err)
	}
	clock.Within(t, 5*time.Second)
	eventually(t, "the process to end", func() bool { return !running(t, filepath.Join(s.Dir, "pid")) })
	says(t, c, "echo next", "next")
	if n := s.Connections(); n != 1 {
		t.Errorf("%d connections: a timeout of a command is none of the connection", n)
	}
}

// TestCommandThatWillNotStop: sshd passes signals on only for some users, and
// closing a channel ends nothing.
func TestCommandThatWillNotStop(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server sshtest.Config
		script string
	}{
		"deaf to signals":    {sshtest.Config{}, "trap '' TERM HUP; while :; do sleep 0.1; done"},
		"no signals arrive":  {sshtest.Config{NoSignals: true}, "sleep 60"},
		"children elsewhere": {sshtest.Config{NoSignals: true}, "setsid sh -c 'echo $$ >pid; exec sleep 60' & wait"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.server.Password = "secret"
			s := sshtest.Start(t, c.server)
			conn := open(t, config(t, s))
			ctx, stop := context.WithCancelCause(t.Context())
			why := errors.New("a person said stop")
			done := make(chan error, 1)
			go func() {
				_, err := conn.Exec(ctx, sh("echo $$ >pid; "+c.script))
				done <- err
			}()
			eventually(t, "the command", exists(filepath.Join(s.Dir, "pid")))
			stop(why)
			if err := <-done; !errors.Is(err, why) {
				t.Fatalf("error is %v", err)
			}
			eventually(t, "the process to end", func() bool { return !running(t, filepath.Join(s.Dir, "pid")) })
		})
	}
}

func running(t *testing.T, pidFile string) bool {
	t.Helper()
	b, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) == 0 {
		return true // about to be written
	}
	stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(b)) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func TestInputAndOutput(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Config{Password: "secret"})
	c := open(t, config(t, s))
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB

	var out bytes.Buffer
	res, err := c.Exec(t.Context(), connector.Cmd{Argv: []string{"cat"}, Stdin: bytes.NewReader(big), Stdout: &out, Limit: 100})
	if err != nil || !bytes.Equal(out.Bytes(), big) || len(res.Stdout) != 100 || !res.Truncated {
		t.Errorf("cat: %d bytes to the writer, %d kept, truncated %t, %v", out.Len(), len(res.Stdout), res.Truncated, err)
	}
	// A command that does not read its input ends all the same.
	if res, err := c.Exec(t.Context(), connector.Cmd{Argv: []string{"true"}, Stdin: endless{}}); err != nil || res.Exit != 0 {
		t.Errorf("true: %+v, %v", res, err)
	}
	if res, err := c.Exec(t.Context(), connector.Cmd{Argv: []string{"head", "-c", "3"}, Stdin: endless{}}); err != nil || len(res.Stdout) != 3 {
		t.Errorf("head: %+v, %v", res, err)
	}
	// An input that breaks off is told, and not taken for the whole.
	broken := errors.New("the disk is broken")
	in := io.MultiReader(strings.NewReader("part"), &failing{broken})
	if _, err := c.Exec(t.Context(), connector.Cmd{Argv: []string{"cat"}, Stdin: in}); !errors.Is(err, broken) {
		t.Errorf("input: %v", err)
	}
	// A writer that fails ends the command.
	if _, err := c.Exec(t.Context(), connector.Cmd{Argv: []string{"cat", "/dev/zero"}, Stdout: &failing{broken}}); !errors.Is(err, broken) {
		t.Errorf("output: %v", err)
	}
	// Signals are exit statuses as in a shell.
	for script, want := range map[string]int{"kill -TERM $$": 143, "kill -KILL $$": 137, "exit 7": 7} {
		if res, err := c.Exec(t.Context(), sh(script)); err != nil || res.Exit != want {
			t.Errorf("%s: exit %d, %v; want %d", script, res.Exit, err, want)
		}
	}
	// The environment is the same everywhere.
	says(t, c, `echo "$LC_ALL $PATH"`, "C "+connector.SearchPath)
	if n := s.Connections(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error)  { return 0, f.err }
func (f *failing) Write([]byte) (int, error) { return 0, f.err }

func TestClose(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Config{Password: "secret"})
	c := open(t, config(t, s))
	done := make(chan error, 1)
	go func() {
		_, err := c.Exec(t.Context(), sh("touch started; sleep 30"))
		done <- err
	}()
	eventually(t, "the command", exists(filepath.Join(s.Dir, "started")))
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, connector.ErrClosed) {
		t.Errorf("the command that ran: %v", err)
	}
	if _, err := c.Exec(t.Context(), sh("true")); !errors.Is(err, connector.ErrClosed) {
		t.Errorf("the next one: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

func TestUnanswered(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	mute, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	go func() {
		for {
			conn, err := web.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
			conn.Close()
		}
	}()
	for _, c := range []struct {
		name, addr   string
		says, advice string
	}{
		{"refused", closed.Addr().String(), "connection refused", "check that sshd runs"},
		{"silent", mute.Addr().String(), "no answer within 300ms", "connectionTimeout"},
		{"no sshd", web.Addr().String(), "SSH handshake failed", "sshd listens on this port"},
	} {
		t.Run(c.name, func(t *testing.T) {
			host, port, err := net.SplitHostPort(c.addr)
			if err != nil {
				t.Fatal(err)
			}
			cfg := ssh.Config{Address: host, Password: "secret", Timeout: 300 * time.Millisecond}
			if cfg.Port, err = strconv.Atoi(port); err != nil {
				t.Fatal(err)
			}
			_, err = open(t, cfg).Exec(t.Context(), sh("true"))
			var e *connector.DialError
			if !errors.As(err, &e) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), c.addr) || !strings.Contains(e.Advice(), c.advice) {
				t.Errorf("error is %v, advice %q", err, e.Advice())
			}
		})
	}
	// Whoever stops waiting is not told that the host is at fault.
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	host, port, _ := net.SplitHostPort(mute.Addr().String())
	n, _ := strconv.Atoi(port)
	if err := open(t, ssh.Config{Address: host, Port: n, Password: "x"}).Connect(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

func TestNoSessionsAtAll(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Config{Password: "secret", MaxSessions: -1})
	_, err := open(t, config(t, s)).Exec(t.Context(), sh("true"))
	if err == nil || !strings.Contains(err.Error(), "open a session") {
		t.Errorf("error is %v", err)
	}
}
