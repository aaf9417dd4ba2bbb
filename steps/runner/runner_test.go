package runner_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/runner"
)

// tee copies the output of commands.
type tee struct {
	connector.Conn
	w io.Writer
}

func (c tee) Exec(ctx context.Context, cmd connector.Cmd) (connector.Result, error) {
	res, err := c.Conn.Exec(ctx, cmd)
	_, _ = c.w.Write(res.Stdout)
	return res, err
}

func TestCmdErrorText(t *testing.T) {
	for _, c := range []struct {
		name string
		err  runner.CmdError
		want string
	}{
		{"program", runner.CmdError{Verb: "exec", Argv: []string{"/usr/bin/etcdctl", "get"}, Exit: 1, Stderr: "context deadline exceeded\n"}, "etcdctl: exit 1: context deadline exceeded"},
		{"verb", runner.CmdError{Verb: "fs.write", Argv: []string{"/etc/x", "12"}, Exit: 1, Stderr: "cat: No space left on device"}, "fs.write /etc/x: exit 1: cat: No space left on device"},
		{"nothing said", runner.CmdError{Verb: "exec", Argv: []string{"false"}, Exit: 1}, "false: exit 1"},
		{"said on stdout", runner.CmdError{Verb: "exec", Argv: []string{"x"}, Exit: 2, Stderr: "\n \n", Stdout: "it failed\n"}, "x: exit 2: it failed"},
		{"last three lines", runner.CmdError{Verb: "exec", Argv: []string{"x"}, Exit: 1, Stderr: "a\nb\n\nc\r\nd\n"}, "x: exit 1: b; c; d"},
		{"long lines", runner.CmdError{Verb: "exec", Argv: []string{"x"}, Exit: 1, Stderr: strings.Repeat("a", 400) + "\n" + strings.Repeat("b", 200)}, "x: exit 1: " + strings.Repeat("b", 200)},
		{"one very long line", runner.CmdError{Verb: "exec", Argv: []string{"x"}, Exit: 1, Stderr: strings.Repeat("ä", 400)}, "x: exit 1: …" + strings.Repeat("ä", 150)},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestSecretsStayOut: errors, logs and output for people contain no secrets; results are
// unchanged.
func TestSecretsStayOut(t *testing.T) {
	const known, given = "s3cret-known", "s3cret-given"
	said := "out " + known + " " + given
	sim := conntest.New(t)
	sim.Script(connector.Result{Exit: 1, Stdout: []byte(said), Stderr: []byte(said)}, "tool", "--token="+given, known)
	var log, output bytes.Buffer
	var seen []runner.CommandRecord
	r := runner.New(sim, runner.Options{
		Redactor: connector.NewRedactor(known),
		Log:      slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Observe:  func(ran runner.CommandRecord) { seen = append(seen, ran) },
	})
	res, err := r.Run(t.Context(), runner.Cmd{Argv: []string{"tool", "--token=" + given, known}, Secrets: []string{given}, Output: &output})
	var failed *runner.CmdError
	if !errors.As(err, &failed) {
		t.Fatalf("error is %v", err)
	}
	if string(res.Stdout) != said {
		t.Errorf("the result was changed: %q", res.Stdout)
	}
	shown := log.String() + output.String() + err.Error() + failed.Stderr + failed.Stdout + strings.Join(failed.Argv, " ")
	for _, ran := range seen {
		shown += strings.Join(ran.Args, " ")
	}
	if strings.Contains(shown, "s3cret") {
		t.Errorf("a secret is shown:\n%s", shown)
	}
	if len(seen) != 1 || seen[0].Exit != 1 || seen[0].Args[1] != "--token=***" || !strings.Contains(log.String(), "tool") {
		t.Errorf("observed %+v, logged %s", seen, log.String())
	}
}

func TestObserveWhatBreaks(t *testing.T) {
	sim := conntest.New(t)
	var seen []runner.CommandRecord
	r := runner.New(sim, runner.Options{Observe: func(ran runner.CommandRecord) { seen = append(seen, ran) }})
	sim.Break(conntest.Fault{At: 1})
	_, err := r.ReadFile(t.Context(), "/etc/hosts")
	var broken *connector.BrokenError
	if !errors.As(err, &broken) || len(seen) != 1 || seen[0].Exit != -1 || seen[0].Err == nil || seen[0].Verb != connector.VerbRead {
		t.Errorf("error is %v, observed %+v", err, seen)
	}
}

func TestAsLogin(t *testing.T) {
	for _, c := range []struct {
		opt  runner.Options
		cmd  runner.Cmd
		sudo bool
	}{
		{runner.Options{}, runner.Cmd{}, true}, {runner.Options{AsLogin: true}, runner.Cmd{}, false}, {runner.Options{}, runner.Cmd{AsLogin: true}, false},
	} {
		sim := conntest.New(t)
		sim.Script(connector.Result{}, "id")
		c.cmd.Argv = []string{"id"}
		if _, err := runner.New(sim, c.opt).Run(t.Context(), c.cmd); err != nil {
			t.Fatal(err)
		}
		if got := sim.Calls()[0].Sudo; got != c.sudo {
			t.Errorf("%+v: sudo is %t", c, got)
		}
	}
}

// TestWriteBreaksAnywhere: a connection that breaks during a write leaves the old file or
// the new one.
func TestWriteBreaksAnywhere(t *testing.T) {
	for _, after := range []bool{false, true} {
		sim := conntest.New(t)
		sim.AddFile("/etc/x", "old", 0o644)
		sim.Break(conntest.Fault{At: 1, After: after})
		r := runner.New(sim, runner.Options{})
		err := r.WriteFile(t.Context(), "/etc/x", []byte("new"), runner.Attr{})
		var broken *connector.BrokenError
		if !errors.As(err, &broken) {
			t.Fatalf("error is %v", err)
		}
		if want := map[bool]string{false: "old", true: "new"}[after]; sim.Read("/etc/x") != want {
			t.Errorf("after %t: the file holds %q", after, sim.Read("/etc/x"))
		}
	}
}

func TestReboot(t *testing.T) {
	sim := conntest.New(t)
	sim.AddUnit("kept.service", "[Install]\nWantedBy=multi-user.target\n", true, true)
	sim.AddUnit("lost.service", "[Service]\nExecStart=/bin/x\n", true, false)
	r := runner.New(sim, runner.Options{})
	if err := r.SetSysctl(t.Context(), "net.ipv4.ip_forward", "1"); err != nil {
		t.Fatal(err)
	}
	sim.AddFile("/etc/sysctl.d/90-x.conf", "vm.swappiness = 0\n", 0o644)
	sim.AddFile("/etc/modules-load.d/x.conf", "br_netfilter\n", 0o644)
	sim.AddFile("/run/x/y", "", 0o644)
	// The connection breaks under the command, as it does when a host goes down.
	sim.Break(conntest.Fault{At: 2, After: true})
	if err := r.Reboot(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if !sim.Unit("kept.service").Active || sim.Unit("lost.service").Active {
		t.Error("units are not those that boot")
	}
	if sim.Sysctl("net.ipv4.ip_forward") != "0" || sim.Sysctl("vm.swappiness") != "0" || sim.Module("br_netfilter") != "loaded" {
		t.Error("kernel settings are not those of the files")
	}
	if _, ok := sim.File("/run/x"); ok {
		t.Error("/run survived")
	}
}

func TestRebootThatDoesNotComeBack(t *testing.T) {
	sim := conntest.New(t)
	sim.Handle(func(c connector.Cmd) bool { return c.Verb == connector.VerbReboot },
		func(connector.Cmd, []byte) (connector.Result, bool) { return connector.Result{}, true }) // it only says so
	err := runner.New(sim, runner.Options{}).Reboot(t.Context(), 100*time.Millisecond)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "did not answer within 100ms") {
		t.Errorf("error is %v", err)
	}
}

// TestJobOutlivesTheConnection: the connection breaks at each command; the job runs once,
// and its result is returned.
func TestJobOutlivesTheConnection(t *testing.T) {
	for at := 1; at <= 6; at++ {
		for _, after := range []bool{false, true} {
			sim := conntest.New(t)
			runs := 0
			sim.HandleProgram("init", func(connector.Cmd, []byte) (connector.Result, bool) {
				runs++
				return connector.Result{Stdout: []byte("done\n")}, true
			})
			r := runner.New(sim, runner.Options{})
			j := runner.Job{Name: "init", Argv: []string{"init", "$HOME"}, Poll: time.Millisecond}
			sim.Break(conntest.Fault{At: at, After: after})
			log, err := r.RunJob(t.Context(), j)
			if err != nil { // it broke where it cannot go on by itself: the next run finds the job
				if log, err = r.RunJob(t.Context(), j); err != nil {
					t.Fatalf("at %d, after %t: %v", at, after, err)
				}
			}
			if string(log) != "done\n" || runs != 1 {
				t.Errorf("at %d, after %t: ran %d times, log %q", at, after, runs, log)
			}
			if jobs := sim.Jobs(); len(jobs) != 0 {
				t.Errorf("at %d, after %t: %q is left", at, after, jobs)
			}
			for _, c := range sim.Calls() {
				if c.Verb == connector.VerbJobStart && c.Args[len(c.Args)-1] != "$$HOME" {
					t.Errorf("systemd would take %q for a variable", c.Args)
				}
			}
		}
	}
}

func TestJobWaitEnds(t *testing.T) { synctest.Test(t, jobWaitEnds) }

func jobWaitEnds(t *testing.T) {
	sim := conntest.New(t)
	sim.Script(connector.Result{}, "x")
	r := runner.New(sim, runner.Options{})
	j := runner.Job{Name: "x", Argv: []string{"x"}, Poll: time.Hour}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := r.RunJob(ctx, j); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v", err)
	}
	if len(sim.Jobs()) != 1 {
		t.Error("the job was ended by who stopped waiting for it")
	}
	for _, bad := range []string{"", "A", "a b", "../x", "-x"} {
		if _, err := r.RunJob(t.Context(), runner.Job{Name: bad, Argv: []string{"x"}}); err == nil {
			t.Errorf("the name %q was not refused", bad)
		}
	}
}

func TestUploadsGiveUpTogether(t *testing.T) {
	sim := conntest.New(t)
	r := runner.New(sim, runner.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	opened := make(chan struct{})
	go func() {
		<-opened
		cancel()
	}()
	_, err := r.Upload(ctx, runner.Upload{
		Path: "/usr/local/bin/x", Size: 1, SHA256: strings.Repeat("0", 64),
		Open: func(ctx context.Context) (io.ReadCloser, error) {
			close(opened)
			<-ctx.Done()
			return nil, ctx.Err()
		},
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	if _, ok := sim.File("/usr/local/bin/x"); ok {
		t.Error("the file is there")
	}
	for _, u := range []runner.Upload{{Path: "x", SHA256: strings.Repeat("0", 64)}, {Path: "/x", SHA256: "abc"}} {
		if _, err := r.Upload(t.Context(), u); err == nil {
			t.Errorf("%+v was not refused", u)
		}
	}
}

func TestInfoHas(t *testing.T) {
	i := runner.Info{Mode: 0o640, UID: 7, GID: 8, Owner: "lp", Group: "mail"}
	for _, a := range []runner.Attr{{Mode: 0o640}, {Mode: 0o640, Owner: "lp"}, {Mode: 0o640, Owner: "7", Group: "mail"}, i.Attr()} {
		if !i.Has(a) {
			t.Errorf("has not %+v", a)
		}
	}
	for _, a := range []runner.Attr{{}, {Mode: 0o600}, {Mode: 0o640 | fs.ModeSetuid}, {Mode: 0o640, Owner: "root"}, {Mode: 0o640, Group: "7"}} {
		if i.Has(a) {
			t.Errorf("has %+v", a)
		}
	}
	if !(runner.Info{Mode: fs.ModeDir | 0o755}).Has(runner.Attr{}) {
		t.Error("a folder's default is not 0755")
	}
}
