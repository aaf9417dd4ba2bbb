package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/report"
	"github.com/mensylisir/kubexm/installer/site"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// small is a cluster of a master and workers.
func small(workers int) *manifest.Cluster {
	c := &manifest.Cluster{}
	c.Metadata.Name = "demo"
	for i := range workers + 1 {
		h := manifest.Host{Name: fmt.Sprintf("w%d", i), Address: fmt.Sprintf("192.0.2.%d", 20+i)}
		if i == 0 {
			h.Name = "m1"
		}
		c.Spec.Hosts = append(c.Spec.Hosts, h)
	}
	return c
}

// does is a step that acts once on each host, or answers with an error.
func does(name string, act func(context.Context, *steps.Host) error) steps.Step {
	var done sync.Map
	return &op.Do{
		M:    steps.Meta{Name: name},
		Done: func(_ context.Context, h *steps.Host) (bool, error) { _, ok := done.Load(h.Name); return ok, nil },
		Act: func(ctx context.Context, h *steps.Host) error {
			if act != nil {
				if err := act(ctx, h); err != nil {
					return err
				}
			}
			done.Store(h.Name, true)
			return nil
		},
		Undo: op.Unwound,
	}
}

// trial is one command on a plan of a test's, without a host.
type trial struct {
	out, err bytes.Buffer
	app      *app
	site     *siteRun
	flags    siteFlags
}

func newTrial(c *manifest.Cluster, output string, shape func(plan.Scope) plan.Fragment) (*trial, error) {
	t := &trial{site: &siteRun{Site: &site.Site{Request: site.Request{Options: installer.Options{Cluster: c, Parallel: 1}}}, kubeconfig: ".kubexm/demo/kubeconfig"}, flags: siteFlags{}}
	t.app = &app{out: &t.out, err: &t.err, env: func(string) (string, bool) { return "", false }, stop: make(chan struct{}), output: output}
	t.app.screen, t.site.Stop = console.NewScreen(&t.err), t.app.stop
	if output == "json" {
		t.app.lines = console.NewLines(&t.out, "json")
	}
	t.site.Pipeline = pipeline.Create()
	t.site.Pipeline.Modules = []plan.Module{{Name: "m", Plan: plan.Sequential(plan.Task{Name: "t", Plan: shape})}}
	var err error
	t.site.Graph, err = plan.Build(t.site.Pipeline, plan.Scope{Want: c})
	return t, err
}

// onEngine runs a plan as a session does, on hosts that nobody reaches.
func onEngine(ctx context.Context, g *plan.Graph, o installer.RunOptions) (string, error) {
	e := &engine.Engine{
		Commands: o.Parallel, Uploads: 1, DryRun: o.DryRun, Stop: o.Stop, Report: o.Report, Rollback: o.Rollback,
		Host: func(h manifest.Host) *steps.Host { return &steps.Host{Host: h, Log: slog.New(slog.DiscardHandler)} },
	}
	return ".kubexm/demo/runs/now.jsonl", e.Run(ctx, g)
}

func (t *trial) run(ctx context.Context) int {
	t.out.Reset()
	t.err.Reset()
	err := t.app.execPlan(ctx, &t.flags, t.site, onEngine)
	return t.app.report(ctx, t.app.endLines(ctx, t.site, err))
}

// times are what differs from run to run.
var times = regexp.MustCompile(`(?m)"time":"[^"]*"|"seconds":[0-9.e-]+,?|\b[0-9.]+s\b|^ +[0-9.]+s`)

// counts are how far a run is at a line.
var counts = regexp.MustCompile(`(?m)^TIME +[0-9]+/`)

// said is what a run ended with, as goldens hold it: which of several hosts comes
// first is chance, so lines of events and of JSON are sorted.
func (t *trial) said(code int) string {
	text := func(b *bytes.Buffer) string {
		lines := strings.SplitAfter(counts.ReplaceAllString(times.ReplaceAllString(b.String(), "TIME"), "TIME n/"), "\n")
		event := func(l string) bool {
			return strings.HasPrefix(l, "TIME ") || strings.HasPrefix(l, `{"type":"step`) || strings.Contains(l, `"severity":"warning"`)
		}
		for i := 0; i < len(lines); i++ {
			end := i
			for end < len(lines) && event(lines[end]) {
				end++
			}
			slices.Sort(lines[i:end])
			i = max(i, end)
		}
		return strings.Join(lines, "")
	}
	return fmt.Sprintf("exit %d\n-- standard output --\n%s-- standard error --\n%s", code, text(&t.out), text(&t.err))
}

func command(stderr string, argv ...string) error {
	return &runner.CmdError{Verb: connector.VerbExec, Argv: argv, Exit: 1, Stderr: stderr}
}

// stories are plans with all that can come of them.
func stories() map[string]func(s plan.Scope) plan.Fragment {
	check := func(name string, found map[string][]steps.Finding) steps.Step {
		return op.Check(name, func(_ context.Context, h *steps.Host) (steps.Findings, error) { return found[h.Name], nil })
	}
	workers := func(s plan.Scope) []manifest.Host { return s.Hosts()[1:] }
	return map[string]func(s plan.Scope) plan.Fragment{
		"checks": func(s plan.Scope) plan.Fragment {
			swap := steps.Finding{What: "swap is on (/dev/sda2)", Advice: "run swapoff -a, and take it out of /etc/fstab"}
			old := steps.Finding{What: "the clock is 3 s behind", Advice: "let chrony run", Warning: true}
			return plan.Seq(plan.On(s.Hosts(),
				check("preflight.system", map[string][]steps.Finding{"w1": {swap}, "w2": {swap, old}, "w3": {swap}, "w4": {swap}, "w5": {swap}}),
				check("preflight.ports", map[string][]steps.Finding{"m1": {{What: "port 6443, which kube-apiserver needs, is taken by nginx", Advice: "stop it"}}}),
			), plan.On(s.Hosts(), does("x.never", nil)))
		},
		"command": func(s plan.Scope) plan.Fragment {
			return plan.On(workers(s)[:1], does("kubeadm.join-worker", func(context.Context, *steps.Host) error {
				err := fmt.Errorf("join the cluster: %w", command("[preflight] Running pre-flight checks\n\t[ERROR FileAvailable--etc-kubernetes-kubelet.conf]: exists\nerror execution phase preflight\n", "kubeadm", "join", "--config", "/run/kubexm/join file.yaml"))
				return steps.Advise(steps.Advise(err, "see journalctl -u kubelet"), "see journalctl -u kubelet")
			}))
		},
		"same": func(s plan.Scope) plan.Fragment {
			var begun sync.WaitGroup // all begin before the first fails
			begun.Add(len(workers(s)))
			return plan.On(workers(s), does("kubelet.start", func(_ context.Context, h *steps.Host) error {
				begun.Done()
				begun.Wait()
				if h.Name == "w3" {
					return errors.New("out of space")
				}
				return steps.Advise(fmt.Errorf("kubelet on %s (%s) is not healthy", h.Name, h.Address), "see journalctl -u kubelet on %s", h.Name)
			}))
		},
		"panic": func(s plan.Scope) plan.Fragment {
			return plan.On(s.Hosts()[:1], does("x.panics", func(context.Context, *steps.Host) error { return errors.New("step panicked: oh\ngoroutine 1\nmore") }))
		},
		"task": func(s plan.Scope) plan.Fragment {
			undo := func(name string, undo op.Fn) steps.Step {
				x := does(name, nil).(*op.Do)
				x.Undo = undo
				return x
			}
			var begun sync.WaitGroup // both begin before the first fails
			begun.Add(2)
			fails := func(name string) steps.Step {
				return does(name, func(context.Context, *steps.Host) error {
					begun.Done()
					begun.Wait()
					return errors.New("out of luck")
				})
			}
			stuck := undo("b.stuck", func(context.Context, *steps.Host) error { return errors.New("device is busy") })
			return plan.Par(plan.On(workers(s)[:1], undo("a.for-good", nil), does("a.undone", nil), fails("a.fails")), plan.On(workers(s)[1:2], stuck, fails("b.fails")))
		},
		"good": func(s plan.Scope) plan.Fragment {
			return plan.Seq(plan.On(s.Hosts(), check("preflight.system", nil)), plan.On(s.Hosts()[:1], does("a.one", nil), does("a.two", nil)))
		},
	}
}

// TestRunsAsTold holds what people and programs read of runs.
func TestRunsAsTold(t *testing.T) {
	for name := range stories() {
		for _, output := range []string{"text", "json"} {
			t.Run(name+" "+output, func(t *testing.T) {
				x, err := newTrial(small(5), output, stories()[name])
				if err != nil {
					t.Fatal(err)
				}
				if name == "same" || name == "task" {
					x.site.Parallel = 8
				}
				if name == "task" {
					x.flags.rollback = "task"
				}
				said := x.said(x.run(t.Context()))
				if name == "good" {
					said += "== again ==\n" + x.said(x.run(t.Context()))
				}
				golden(t, "run-"+name+"-"+output+".txt", said)
			})
		}
	}
}

// TestSchemaIsDocumented: every field and word of -o json is in the docs.
func TestSchemaIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/run-events.md")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"started", "ran", "already done", "checked", "would run", "tried again", "failed", "rolled back", "rolling back", "kept", "interrupted"}
	for _, typ := range []reflect.Type{reflect.TypeFor[console.Line](), reflect.TypeFor[console.Summary](), reflect.TypeFor[report.Command](), reflect.TypeFor[report.Tally]()} {
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			want = append(want, name)
		}
	}
	for _, w := range want {
		if !strings.Contains(string(text), "`"+w+"`") {
			t.Errorf("docs/reference/run-events.md does not tell of %q", w)
		}
	}
}

// TestWarningsBeforeTheFirstChange: what checks let pass is one table, said once.
func TestWarningsBeforeTheFirstChange(t *testing.T) {
	x, err := newTrial(small(2), "text", func(s plan.Scope) plan.Fragment {
		look := func(context.Context, *steps.Host) (steps.Findings, error) {
			return steps.Findings{{What: "little memory", Advice: "add some", Warning: true}}, nil
		}
		c := op.Check("preflight.memory", look)
		return plan.Seq(plan.On(s.Hosts(), c), plan.On(s.Hosts()[:1], does("a.one", nil)))
	})
	if err != nil {
		t.Fatal(err)
	}
	code := x.run(t.Context())
	table, change := strings.Index(x.err.String(), "warning  m1, w1, w2  memory  little memory  add some"), strings.Index(x.err.String(), "a.one")
	if code != 0 || table < 0 || change < table || strings.Count(x.err.String(), "little memory") != 1 {
		t.Errorf("exit %d\n%s", code, x.err.String())
	}
}

// TestTableFolds: a narrow window folds the two columns of text.
func TestTableFolds(t *testing.T) {
	c := small(4)
	var b bytes.Buffer
	all := []steps.Finding{
		{Host: "w2", What: "port 10250, which kubelet needs, is taken by an older kubelet", Advice: "stop it: ss -tlnp 'sport = :10250' on w2 tells more"},
		{Host: "w1", Check: "preflight.swap", What: "swap is on", Advice: "swapoff -a"},
		{Host: "m1", Check: "preflight.memory", What: "has little memory", Advice: "give it more", Warning: true},
		{Check: "preflight.disk-space", What: "not looked at", Advice: "name it", Note: true},
	}
	for _, width := range []int{0, 80, 40} {
		fmt.Fprintf(&b, "-- width %d --\n", width)
		console.PrintFindings(&b, all, c, width)
	}
	golden(t, "findings-folded.txt", b.String())
}

// TestDryRunReads: a list for each host, one for hosts that are alike.
func TestDryRunReads(t *testing.T) {
	x, err := newTrial(small(3), "text", func(s plan.Scope) plan.Fragment {
		done := does("a.done", nil)
		for _, h := range s.Hosts()[:2] {
			_ = done.Run(context.Background(), &steps.Host{Host: h})
		}
		wait := &op.Do{M: steps.Meta{Name: "a.wait", ReadOnly: true}, Done: func(context.Context, *steps.Host) (bool, error) { return false, nil }}
		return plan.Seq(plan.On(s.Hosts(), done, files{}), plan.On(s.Hosts()[:1], does("a.init", nil), wait))
	})
	if err != nil {
		t.Fatal(err)
	}
	x.site.DryRun = true
	golden(t, "dry-run.txt", x.said(x.run(t.Context())))
}

// files is a step that would write two files, but on the master.
type files struct{}

func (files) Meta() steps.Meta { return steps.Meta{Name: "a.files"} }
func (files) Precheck(_ context.Context, h *steps.Host) (steps.Verdict, error) {
	if h.Name == "m1" {
		return steps.Done, nil
	}
	return steps.Todo, nil
}
func (files) Run(context.Context, *steps.Host) error      { return errors.New("ran in a dry run") }
func (files) Rollback(context.Context, *steps.Host) error { return nil }
func (files) Diff(context.Context, *steps.Host) ([]string, error) {
	return []string{"write /etc/a, 2 lines\n  - old\n  + new", "start unit b.service"}, nil
}

// slowMain is kubexm with one command: a run of two steps of which the first
// takes until a file is gone. Signals reach it as they reach kubexm.
func slowMain() int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	x, err := newTrial(small(0), "text", func(s plan.Scope) plan.Fragment {
		return plan.On(s.Hosts(), does("x.slow", func(ctx context.Context, _ *steps.Host) error {
			fmt.Fprintln(os.Stdout, "begun")
			for {
				if _, err := os.Stat(os.Args[1]); err != nil {
					return nil
				}
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(5 * time.Millisecond):
				}
			}
		}), does("x.next", nil))
	})
	if err != nil {
		return 99
	}
	x.app.err, x.app.screen = os.Stderr, console.NewScreen(os.Stderr)
	signal.Reset()
	x.app.listen(cancel)
	return x.app.report(ctx, x.app.execPlan(ctx, &x.flags, x.site, onEngine))
}

// TestInterrupt presses Ctrl-C once, and twice, on a real process.
func TestInterrupt(t *testing.T) {
	for _, twice := range []bool{false, true} {
		t.Run(fmt.Sprintf("twice=%t", twice), func(t *testing.T) {
			block := t.TempDir() + "/block"
			if err := os.WriteFile(block, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "kubexm-slow", block)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			said, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			until := func(r interface{ Read([]byte) (int, error) }, word string) {
				t.Helper()
				b := make([]byte, 4096)
				for !strings.Contains(text.String(), word) {
					n, err := r.Read(b)
					text.Write(b[:n])
					if err != nil {
						break
					}
				}
				if !strings.Contains(text.String(), word) {
					t.Errorf("%q was not said:\n%s", word, text.String())
				}
			}
			interrupt := func() {
				t.Helper()
				if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
					t.Error(err)
				}
			}
			until(out, "begun")
			interrupt()
			until(said, "stopping: running steps are completed, no new step starts; press Ctrl-C again to cancel running steps")
			end := "create demo: stopped after"
			if twice {
				interrupt()
				until(said, "cancelling: ")
				end = "create demo: interrupted after"
			} else if err := os.Remove(block); err != nil {
				t.Error(err)
			}
			until(said, end)
			until(said, "next: run the same command again")
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
				t.Errorf("%v, want exit %d\n%s", err, exitInterrupted, text.String())
			}
			if strings.Contains(text.String(), "x.next") {
				t.Errorf("a step began after Ctrl-C:\n%s", text.String())
			}
		})
	}
}

// TestLinesAreJSON: whatever a run meets, each line is one object, and the last
// one is the summary.
func TestLinesAreJSON(t *testing.T) {
	for name, shape := range stories() {
		x, err := newTrial(small(5), "json", shape)
		if err != nil {
			t.Fatal(err)
		}
		x.site.Parallel = 8 // steps of some stories wait for each other
		code := x.run(t.Context())
		var last console.Line
		for line := range strings.Lines(x.out.String()) {
			last = console.Line{}
			d := json.NewDecoder(strings.NewReader(line))
			d.DisallowUnknownFields()
			if err := d.Decode(&last); err != nil {
				t.Errorf("%s: %v: %s", name, err, line)
			}
		}
		if last.Type != "summary" || last.Summary == nil || last.Summary.ExitCode != code {
			t.Errorf("%s: exit %d, the last line is %+v", name, code, last)
		}
	}
}

// TestFindingsThatNameOthers: what all hosts have is one row, though it names one of them.
func TestFindingsThatNameOthers(t *testing.T) {
	c := small(2)
	all := []steps.Finding{}
	for _, h := range c.Spec.Hosts {
		all = append(all, steps.Finding{Host: h.Name, Check: "preflight.endpoint", What: "the load balancer refuses", Advice: "have it pass TCP to " + c.Spec.Hosts[0].Address + ":6443"})
	}
	rows := report.FindingRows(all, c)
	if len(rows) != 1 || len(rows[0].Hosts) != len(c.Spec.Hosts) || !strings.Contains(rows[0].Advice, c.Spec.Hosts[0].Address) {
		t.Errorf("%d rows: %+v", len(rows), rows)
	}
}
