package conntest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/runner"
)

// complaints is a TB that keeps what it is told.
type complaints []string

func (c *complaints) Helper() {}
func (c *complaints) Errorf(format string, args ...any) {
	*c = append(*c, fmt.Sprintf(format, args...))
}

func TestSimIsStrict(t *testing.T) {
	var c complaints
	sim := conntest.New(&c)
	r := runner.New(sim, runner.Options{})
	if _, err := r.Exec(t.Context(), "kubeadm", "init", "it's"); err == nil || !strings.Contains(err.Error(), `'kubeadm' init 'it'\''s'`) {
		t.Errorf("error is %v", err)
	}
	if len(c) != 1 {
		t.Errorf("the test was told %q", c)
	}
	if _, err := sim.Exec(t.Context(), connector.Cmd{Verb: "no.such-verb", Argv: []string{"x"}}); err == nil || len(c) != 2 {
		t.Errorf("a verb that does not exist: %v, %q", err, c)
	}
	if _, err := conntest.New(nil).Exec(t.Context(), connector.Cmd{Argv: []string{"x"}}); err == nil {
		t.Error("without a test there is no error")
	}
}

func TestScripts(t *testing.T) {
	sim := conntest.New(t)
	r := runner.New(sim, runner.Options{})
	sim.Script(connector.Result{Stdout: []byte("1")}, "tool", "a")
	sim.Script(connector.Result{Stdout: []byte("2")}, "tool", "a") // the newest counts
	sim.HandleProgram("kubeadm", func(c connector.Cmd, stdin []byte) (connector.Result, bool) {
		if c.Argv[1] != "init" {
			return connector.Result{}, false
		}
		sim.AddFile("/etc/kubernetes/admin.conf", string(stdin), 0o600) // a handler may use the host
		return connector.Result{}, true
	})
	sim.Fail(connector.VerbUnitStart, "kubelet.service", 1, "Job for kubelet.service failed.")
	if out, err := r.Exec(t.Context(), "tool", "a"); err != nil || string(out) != "2" {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := r.Run(t.Context(), runner.Cmd{Argv: []string{"kubeadm", "init"}, Stdin: strings.NewReader("conf")}); err != nil || sim.Read("/etc/kubernetes/admin.conf") != "conf" {
		t.Errorf("%v", err)
	}
	sim.AddUnit("kubelet.service", "[Service]\n", false, false)
	var failed *runner.CmdError
	if err := r.UnitStart(t.Context(), "kubelet.service"); !errors.As(err, &failed) || !strings.Contains(err.Error(), "Job for kubelet.service failed") {
		t.Errorf("%v", err)
	}
	if calls := sim.Calls(); len(calls) != 3 || calls[2].String() != "unit.start 'kubelet.service'" || calls[2].Exit != 1 || !calls[2].Sudo {
		t.Errorf("calls are %v", calls)
	}
	sim.ForgetCalls()
	if len(sim.Calls()) != 0 {
		t.Error("calls are not forgotten")
	}
}

func TestBreak(t *testing.T) {
	for _, c := range []struct {
		fault conntest.Fault
		fails []int // of five writes
		done  []int
	}{
		{conntest.Fault{}, nil, []int{1, 2, 3, 4, 5}},
		{conntest.Fault{At: 1}, []int{1}, []int{2, 3, 4, 5}},
		{conntest.Fault{At: 3}, []int{3}, []int{1, 2, 4, 5}},
		{conntest.Fault{At: 3, After: true}, []int{3}, []int{1, 2, 3, 4, 5}},
		{conntest.Fault{At: 3, Stay: true}, []int{3, 4, 5}, []int{1, 2}},
		{conntest.Fault{At: 3, After: true, Stay: true}, []int{3, 4, 5}, []int{1, 2, 3}},
	} {
		sim := conntest.New(t)
		sim.Break(c.fault)
		r := runner.New(sim, runner.Options{})
		var fails, done []int
		for i := 1; i <= 5; i++ {
			var broken *connector.BrokenError
			if err := r.WriteFile(t.Context(), fmt.Sprintf("/tmp/%d", i), nil, runner.Attr{}); errors.As(err, &broken) {
				fails = append(fails, i)
			} else if err != nil {
				t.Fatal(err)
			}
			if _, ok := sim.File(fmt.Sprintf("/tmp/%d", i)); ok {
				done = append(done, i)
			}
		}
		if fmt.Sprint(fails) != fmt.Sprint(c.fails) || fmt.Sprint(done) != fmt.Sprint(c.done) {
			t.Errorf("%+v: failed %v, done %v; want %v, %v", c.fault, fails, done, c.fails, c.done)
		}
		sim.Mend()
		if _, err := r.Hostname(t.Context()); err != nil {
			t.Errorf("%+v: mended, and still %v", c.fault, err)
		}
	}
	sim := conntest.New(t)
	if err := sim.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := sim.Exec(t.Context(), connector.Cmd{Argv: []string{"x"}}); !errors.Is(err, connector.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := conntest.New(t).Exec(ctx, connector.Cmd{Argv: []string{"x"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that ended: %v", err)
	}
}

// TestSnapshot: each kind of change shows, and its inverse makes it go.
func TestSnapshot(t *testing.T) {
	ctx := t.Context()
	unit := []byte("[Service]\nExecStart=/bin/x\n[Install]\nWantedBy=multi-user.target\n")
	for _, c := range []struct {
		name     string
		do, undo func(*runner.Runner) error
	}{
		{"file", func(r *runner.Runner) error { return r.WriteFile(ctx, "/etc/x", nil, runner.Attr{}) }, func(r *runner.Runner) error { return r.Remove(ctx, "/etc/x") }},
		{"content", func(r *runner.Runner) error { return r.WriteFile(ctx, "/etc/hosts", []byte("y"), runner.Attr{}) }, func(r *runner.Runner) error {
			return r.WriteFile(ctx, "/etc/hosts", []byte("127.0.0.1 localhost\n::1 localhost\n"), runner.Attr{})
		}},
		{"mode", func(r *runner.Runner) error { return r.SetAttr(ctx, "/etc/hosts", runner.Attr{Mode: 0o600}) }, func(r *runner.Runner) error { return r.SetAttr(ctx, "/etc/hosts", runner.Attr{}) }},
		{"owner", func(r *runner.Runner) error {
			return r.SetAttr(ctx, "/etc/hosts", runner.Attr{Owner: "nobody", Group: "nogroup"})
		}, func(r *runner.Runner) error {
			return r.SetAttr(ctx, "/etc/hosts", runner.Attr{Owner: "root", Group: "root"})
		}},
		{"folder", func(r *runner.Runner) error { _, err := r.Mkdir(ctx, "/etc/a", runner.Attr{}); return err }, func(r *runner.Runner) error { return r.RemoveDir(ctx, "/etc/a") }},
		{"link", func(r *runner.Runner) error { return r.Link(ctx, "x", "/etc/l") }, func(r *runner.Runner) error { return r.Remove(ctx, "/etc/l") }},
		{"sysctl", func(r *runner.Runner) error { return r.SetSysctl(ctx, "vm.swappiness", "1") }, func(r *runner.Runner) error { return r.SetSysctl(ctx, "vm.swappiness", "60") }},
		{"module", func(r *runner.Runner) error { return r.Modprobe(ctx, "br_netfilter") }, func(r *runner.Runner) error { return r.ModuleUnload(ctx, "br_netfilter") }},
		{"user", func(r *runner.Runner) error { _, err := r.EnsureUser(ctx, runner.NewUser{Name: "etcd"}); return err }, func(r *runner.Runner) error { return r.RemoveUser(ctx, "etcd") }},
		{"group", func(r *runner.Runner) error { _, err := r.EnsureGroup(ctx, "g", 0, false); return err }, func(r *runner.Runner) error { return r.RemoveGroup(ctx, "g") }},
		{"hostname", func(r *runner.Runner) error { return r.SetHostname(ctx, "other") }, func(r *runner.Runner) error { return r.SetHostname(ctx, "node1") }},
		{"enabled", func(r *runner.Runner) error { return r.UnitEnable(ctx, "x.service") }, func(r *runner.Runner) error { return r.UnitDisable(ctx, "x.service") }},
		{"masked", func(r *runner.Runner) error { return r.UnitMask(ctx, "x.service") }, func(r *runner.Runner) error { return r.UnitUnmask(ctx, "x.service") }},
		{"running", func(r *runner.Runner) error { return r.UnitStart(ctx, "x.service") }, func(r *runner.Runner) error { return r.UnitStop(ctx, "x.service") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			sim := conntest.New(t)
			sim.AddUnit("x.service", string(unit), false, false)
			r := runner.New(sim, runner.Options{})
			before := sim.Snapshot()
			if err := c.do(r); err != nil {
				t.Fatal(err)
			}
			if conntest.Diff(before, sim.Snapshot()) == "" {
				t.Error("the change does not show")
			}
			if err := c.undo(r); err != nil {
				t.Fatal(err)
			}
			if d := conntest.Diff(before, sim.Snapshot()); d != "" {
				t.Errorf("left behind:\n%s", d)
			}
		})
	}
}

// TestStaleUnit: systemd runs what it read, not what the file holds.
func TestStaleUnit(t *testing.T) {
	sim := conntest.New(t)
	r := runner.New(sim, runner.Options{})
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const file = "/etc/systemd/system/x.service"
	do(r.WriteFile(t.Context(), file, []byte("one"), runner.Attr{}))
	do(r.UnitStart(t.Context(), "x.service"))
	do(r.WriteFile(t.Context(), file, []byte("two"), runner.Attr{}))
	do(r.UnitRestart(t.Context(), "x.service"))
	if u := sim.Unit("x.service"); !u.Stale || u.Ran != "one" {
		t.Errorf("without a reload: %+v", u)
	}
	do(r.DaemonReload(t.Context()))
	if u := sim.Unit("x.service"); u.Stale || u.Ran != "one" {
		t.Errorf("after the reload, before the restart: %+v", u)
	}
	do(r.UnitRestart(t.Context(), "x.service"))
	if u := sim.Unit("x.service"); u.Ran != "two" {
		t.Errorf("after both: %+v", u)
	}
	_, err := r.Mkdir(t.Context(), file+".d", runner.Attr{})
	do(err)
	do(r.WriteFile(t.Context(), file+".d/10-x.conf", []byte("three"), runner.Attr{}))
	if u := sim.Unit("x.service"); !u.Stale {
		t.Errorf("a drop-in asks for no reload: %+v", u)
	}
	sim.KillUnit("x.service")
	if u := sim.Unit("x.service"); u.Active || !u.Failed {
		t.Errorf("after a crash: %+v", u)
	}
}

func TestSimWritesToSinks(t *testing.T) {
	sim := conntest.New(t)
	sim.Script(connector.Result{Stdout: []byte("0123456789"), Stderr: []byte("0123456789")}, "x")
	var out, errs bytes.Buffer
	res, err := sim.Exec(t.Context(), connector.Cmd{Argv: []string{"x"}, Stdout: &out, Stderr: &errs, Limit: 3})
	if err != nil || out.String() != "0123456789" || errs.Len() != 10 || string(res.Stdout) != "012" || string(res.Stderr) != "789" || !res.Truncated {
		t.Errorf("%q %q %+v %v", out.String(), errs.String(), res, err)
	}
}

// TestBelow lists what is in a folder and below it, and everything from the top.
func TestBelow(t *testing.T) {
	s := conntest.New(t)
	s.AddFile("/srv/a/b/c", "text", 0o644)
	s.RemoveAll("/srv/a/b")
	s.AddFile("/srv/a/d", "text", 0o644)
	if got := strings.Join(s.Below("/srv"), " "); got != "/srv/a /srv/a/d" {
		t.Errorf("below a folder: %q", got)
	}
	if all := s.Below(""); !slices.Contains(all, "/srv/a/d") || !slices.Contains(all, "/etc/hosts") || slices.Contains(all, "/srv/a/b") {
		t.Errorf("below the top: %q", all)
	}
}
