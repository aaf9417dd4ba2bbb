package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// step is a step whose parts a test fills in. Without them it runs once on
// each host and is done.
type step struct {
	m        steps.Meta
	precheck func(context.Context, *steps.Host) (steps.Verdict, error)
	run      func(context.Context, *steps.Host) error
	rollback func(context.Context, *steps.Host) error

	did sync.Map
}

func (s *step) Meta() steps.Meta { return s.m }

func (s *step) Precheck(ctx context.Context, h *steps.Host) (steps.Verdict, error) {
	if s.precheck != nil {
		return s.precheck(ctx, h)
	}
	if _, ok := s.did.Load(h.Name); ok {
		return steps.Done, nil
	}
	return steps.Todo, nil
}

func (s *step) Run(ctx context.Context, h *steps.Host) error {
	if s.run != nil {
		if err := s.run(ctx, h); err != nil {
			return err
		}
	}
	s.did.Store(h.Name, true)
	return nil
}

func (s *step) Rollback(ctx context.Context, h *steps.Host) error {
	s.did.Delete(h.Name)
	if s.rollback != nil {
		return s.rollback(ctx, h)
	}
	return nil
}

func hosts(names ...string) []manifest.Host {
	var hs []manifest.Host
	for _, n := range names {
		hs = append(hs, manifest.Host{Name: n})
	}
	return hs
}

func graph(t *testing.T, f func() plan.Fragment) *plan.Graph {
	t.Helper()
	g, err := plan.Build(plan.Pipeline{Name: "p", Modules: []plan.Module{{Name: "m", Plan: plan.Sequential(
		plan.Task{Name: "t", Plan: func(plan.Scope) plan.Fragment { return f() }},
	)}}}, plan.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// recorder keeps the events of a run as "step@host outcome", without the starts.
type recorder struct {
	events []string
	busy   atomic.Bool
	t      *testing.T
}

func (r *recorder) report(e Event) {
	if !r.busy.CompareAndSwap(false, true) {
		r.t.Error("two events at once")
	}
	defer r.busy.Store(false)
	if e.Outcome != Started {
		r.events = append(r.events, e.Step+"@"+e.Host+" "+string(e.Outcome))
	}
}

func engine(t *testing.T) (*Engine, *recorder) {
	r := &recorder{t: t}
	return &Engine{Commands: 8, Uploads: 1, Report: r.report, Host: func(h manifest.Host) *steps.Host { return &steps.Host{Host: h} }}, r
}

func s(name string) *step { return &step{m: steps.Meta{Name: name}} }

func TestRunAndRunAgain(t *testing.T) {
	a, b := s("a"), s("b")
	g := graph(t, func() plan.Fragment { return plan.On(hosts("x"), a, b) })
	e, r := engine(t)
	for range 2 {
		if err := e.Run(context.Background(), g); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"a@x ran", "b@x ran", "a@x already done", "b@x already done"}
	if !slices.Equal(r.events, want) {
		t.Errorf("%v", r.events)
	}
}

// A lane lets a fast host go on; a barrier makes all wait for all.
func TestLanesAndBarriers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		mark := func(name string, wait map[string]time.Duration) *step {
			x := s(name)
			x.run = func(_ context.Context, h *steps.Host) error {
				time.Sleep(wait[h.Name])
				mu.Lock()
				defer mu.Unlock()
				order = append(order, name+"@"+h.Name)
				return nil
			}
			return x
		}
		g := graph(t, func() plan.Fragment {
			return plan.Seq(
				plan.On(hosts("fast", "slow"), mark("one", map[string]time.Duration{"slow": time.Minute}), mark("two", nil)),
				plan.On(hosts("fast"), mark("three", nil)),
			)
		})
		e, _ := engine(t)
		if err := e.Run(context.Background(), g); err != nil {
			t.Fatal(err)
		}
		want := []string{"one@fast", "two@fast", "one@slow", "two@slow", "three@fast"}
		if !slices.Equal(order, want) {
			t.Errorf("%v", order)
		}
	})
}

func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most, ups, mostUps atomic.Int32
		work := func(n, m *atomic.Int32) func(context.Context, *steps.Host) error {
			return func(context.Context, *steps.Host) error {
				if v := n.Add(1); v > m.Load() {
					m.Store(v)
				}
				time.Sleep(time.Second)
				n.Add(-1)
				return nil
			}
		}
		cmd, up := s("cmd"), s("up")
		cmd.run, up.run, up.m.Upload = work(&now, &most), work(&ups, &mostUps), true
		g := graph(t, func() plan.Fragment {
			hs := hosts("a", "b", "c", "d", "e", "f")
			return plan.Par(plan.On(hs, cmd), plan.On(hs, up))
		})
		e, _ := engine(t)
		e.Commands, e.Uploads = 4, 2
		if err := e.Run(context.Background(), g); err != nil {
			t.Fatal(err)
		}
		if most.Load() > 4 || most.Load() < 2 || mostUps.Load() > 2 {
			t.Errorf("%d commands and %d uploads at once", most.Load(), mostUps.Load())
		}
	})
}

// What failed half way is undone, and nothing that was done before it.
func TestFailureStopsNewStartsAndUndoes(t *testing.T) {
	a, b, c := s("a"), s("b"), s("c")
	boom := errors.New("boom")
	b.run = func(context.Context, *steps.Host) error { return steps.Advise(boom, "look there") }
	g := graph(t, func() plan.Fragment { return plan.On(hosts("x"), a, b, c) })
	e, r := engine(t)
	err := e.Run(context.Background(), g)
	var at *steps.Error
	if !errors.Is(err, boom) || !errors.As(err, &at) || at.Node != "m/t/b" || at.Host != "x" {
		t.Fatalf("%v", err)
	}
	if got := steps.Advice(err); !slices.Equal(got, []string{"look there"}) {
		t.Errorf("advice %v", got)
	}
	if want := []string{"a@x ran", "b@x failed", "b@x rolled back"}; !slices.Equal(r.events, want) {
		t.Errorf("%v", r.events)
	}
}

func TestOneWayIsNotUndone(t *testing.T) {
	a, b := s("a"), s("b")
	b.m.OneWay = true
	b.run = func(context.Context, *steps.Host) error { return errors.New("boom") }
	g := graph(t, func() plan.Fragment { return plan.On(hosts("x"), a, b) })
	e, r := engine(t)
	if err := e.Run(context.Background(), g); err == nil {
		t.Fatal("no error")
	}
	if want := []string{"a@x ran", "b@x failed"}; !slices.Equal(r.events, want) {
		t.Errorf("%v", r.events)
	}
}

func TestRunThatDidNothing(t *testing.T) {
	a := s("a")
	a.precheck = func(context.Context, *steps.Host) (steps.Verdict, error) { return steps.Todo, nil }
	e, _ := engine(t)
	err := e.Run(context.Background(), graph(t, func() plan.Fragment { return plan.On(hosts("x"), a) }))
	if err == nil || !strings.Contains(err.Error(), "still not in the desired state") {
		t.Errorf("%v", err)
	}
	a.m.Always = true
	if err := e.Run(context.Background(), graph(t, func() plan.Fragment { return plan.On(hosts("x"), a) })); err != nil {
		t.Errorf("a step with nothing to observe: %v", err)
	}
}

func TestOutputs(t *testing.T) {
	key := steps.NewKey[string]("token")
	w, rd := s("w"), s("r")
	w.m.Writes, rd.m.Reads = []steps.AnyKey{key}, []steps.AnyKey{key}
	var got string
	rd.run = func(_ context.Context, h *steps.Host) (err error) { got, err = key.Get(h); return err }
	g := func() *plan.Graph {
		return graph(t, func() plan.Fragment { return plan.Seq(plan.On(hosts("x"), w), plan.On(hosts("y"), rd)) })
	}
	e, _ := engine(t)
	if err := e.Run(context.Background(), g()); err == nil || !strings.Contains(err.Error(), "did not produce the outputs") {
		t.Errorf("a writer that gives nothing: %v", err)
	}
	w.run = func(_ context.Context, h *steps.Host) error { return key.Put(h, "secret") }
	w.did.Store("x", true) // done on the host, but the output lives in this run alone
	if err := e.Run(context.Background(), g()); err != nil || got != "secret" {
		t.Errorf("%q, %v", got, err)
	}
	rd.did.Delete("y")
	rd.m.Reads = nil
	if err := e.Run(context.Background(), g()); err == nil || !strings.Contains(err.Error(), "without declaring it") {
		t.Errorf("an output that is not declared: %v", err)
	}
}

func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := s("a")
		a.m.Retry = steps.Retry{Times: 2, Wait: time.Minute}
		tries := 0
		a.run = func(context.Context, *steps.Host) error {
			if tries++; tries < 3 {
				return errors.New("not yet")
			}
			return nil
		}
		e, r := engine(t)
		if err := e.Run(context.Background(), graph(t, func() plan.Fragment { return plan.On(hosts("x"), a) })); err != nil {
			t.Fatal(err)
		}
		if want := []string{"a@x tried again", "a@x tried again", "a@x ran"}; !slices.Equal(r.events, want) {
			t.Errorf("%v", r.events)
		}
	})
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := s("a")
		a.m.Timeout = time.Second
		a.run = func(ctx context.Context, _ *steps.Host) error { <-ctx.Done(); return ctx.Err() }
		e, _ := engine(t)
		err := e.Run(context.Background(), graph(t, func() plan.Fragment { return plan.On(hosts("x"), a) }))
		if err == nil || !strings.Contains(err.Error(), "took longer than 1s") {
			t.Errorf("%v", err)
		}
	})
}

func TestPanicIsContained(t *testing.T) {
	a := s("a")
	a.run = func(context.Context, *steps.Host) error { panic("oh") }
	e, r := engine(t)
	err := e.Run(context.Background(), graph(t, func() plan.Fragment { return plan.On(hosts("x"), a) }))
	if err == nil || !strings.Contains(err.Error(), "step panicked: oh") {
		t.Errorf("%v", err)
	}
	if !slices.Contains(r.events, "a@x failed") {
		t.Errorf("%v", r.events)
	}
}

func TestStopOnceAndTwice(t *testing.T) { synctest.Test(t, stopOnceAndTwice) }

func stopOnceAndTwice(t *testing.T) {
	stop := make(chan struct{})
	a, b := s("a"), s("b")
	a.run = func(context.Context, *steps.Host) error { close(stop); synctest.Wait(); return nil }
	e, r := engine(t)
	e.Stop = stop
	err := e.Run(context.Background(), graph(t, func() plan.Fragment { return plan.On(hosts("x"), a, b) }))
	if !errors.Is(err, ErrStopped) || !slices.Equal(r.events, []string{"a@x ran"}) {
		t.Errorf("once: %v, %v", err, r.events)
	}

	ctx, cancel := context.WithCancel(context.Background())
	c := s("c")
	c.run = func(ctx context.Context, _ *steps.Host) error { cancel(); <-ctx.Done(); return ctx.Err() }
	e, r = engine(t)
	err = e.Run(ctx, graph(t, func() plan.Fragment { return plan.On(hosts("x"), c) }))
	if !errors.Is(err, context.Canceled) || !slices.Equal(r.events, []string{"c@x interrupted", "c@x rolled back"}) {
		t.Errorf("twice: %v, %v", err, r.events)
	}
}

type differ struct{ *step }

func (differ) Diff(context.Context, *steps.Host) ([]string, error) { return []string{"write /a"}, nil }

func TestDryRunChangesNothing(t *testing.T) {
	a, b := s("a"), s("b")
	b.did.Store("x", true)
	ran := false
	a.run = func(context.Context, *steps.Host) error { ran = true; return nil }
	a.precheck = func(_ context.Context, h *steps.Host) (steps.Verdict, error) {
		if !h.DryRun {
			t.Error("the step is not told of the dry run")
		}
		return steps.Todo, nil
	}
	e, r := engine(t)
	e.DryRun = true
	var changes []string
	report := e.Report
	e.Report = func(ev Event) { changes = append(changes, ev.Changes...); report(ev) }
	if err := e.Run(context.Background(), graph(t, func() plan.Fragment { return plan.On(hosts("x"), differ{a}, b) })); err != nil {
		t.Fatal(err)
	}
	if ran || !slices.Equal(r.events, []string{"a@x would run", "b@x already done"}) || !slices.Equal(changes, []string{"write /a"}) {
		t.Errorf("ran %v, %v, %v", ran, r.events, changes)
	}
}

// A step that only looks is counted apart, whether it waited or found all well.
func TestLooking(t *testing.T) {
	check, wait, change := s("check"), s("wait"), s("change")
	check.m.ReadOnly, check.m.Always = true, true
	check.precheck = func(context.Context, *steps.Host) (steps.Verdict, error) { return steps.Todo, nil }
	wait.m.ReadOnly = true
	g := graph(t, func() plan.Fragment { return plan.On(hosts("x"), check, change, wait) })
	e, r := engine(t)
	for range 2 {
		if err := e.Run(context.Background(), g); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"check@x checked", "change@x ran", "wait@x checked", "check@x checked", "change@x already done", "wait@x checked"}
	if !slices.Equal(r.events, want) {
		t.Errorf("%v", r.events)
	}
}

// What a check finds stops every change, on every host, and no other check.
func TestFindingsStopChangesAndLetChecksLook(t *testing.T) {
	one, two, change, aside := s("one"), s("two"), s("change"), s("aside")
	bad := map[string]bool{"x": true}
	for _, c := range []*step{one, two} {
		c.m.ReadOnly, c.m.Always = true, true
		c.run = func(_ context.Context, h *steps.Host) error {
			if bad[h.Name] {
				return steps.Findings{{Host: h.Name, What: c.m.Name}}
			}
			return nil
		}
		c.rollback = func(context.Context, *steps.Host) error { t.Error("a check was undone"); return nil }
	}
	synctest.Test(t, func(t *testing.T) {
		for _, dry := range []bool{false, true} {
			late := s("late") // anew: one that is done already would be over at once
			late.m.ReadOnly, late.m.Always = true, true
			late.run = func(context.Context, *steps.Host) error { time.Sleep(time.Minute); return nil }
			g := graph(t, func() plan.Fragment {
				return plan.Par(
					plan.Seq(plan.On(hosts("x", "y"), one, two), plan.On(hosts("y"), change)),
					plan.On(hosts("z"), late, aside),
				)
			})
			e, r := engine(t)
			e.DryRun = dry
			err := e.Run(context.Background(), g)
			var found int
			for _, x := range flat(err) {
				var f steps.Findings
				if errors.As(x, &f) {
					found += len(f)
				}
			}
			slices.Sort(r.events)
			want := []string{"late@z checked", "one@x failed", "one@y checked", "two@x failed", "two@y checked"}
			if found != 2 || !slices.Equal(r.events, want) {
				t.Errorf("dry run %t: %d findings, %v", dry, found, r.events)
			}
		}
	})
}

func flat(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		return j.Unwrap()
	}
	return []error{err}
}

// A dry run goes on where a step cannot look without what another would bring,
// and fails where it should have been able to.
func TestDryRunBeforeAnythingIsThere(t *testing.T) {
	first, second, third := s("first"), s("second"), s("third")
	second.precheck = func(context.Context, *steps.Host) (steps.Verdict, error) {
		return steps.Todo, errors.New("no such file")
	}
	g := graph(t, func() plan.Fragment { return plan.Seq(plan.On(hosts("x"), first), plan.On(hosts("y"), second, third)) })
	e, r := engine(t)
	e.DryRun = true
	if err := e.Run(context.Background(), g); err != nil {
		t.Fatal(err)
	}
	if want := []string{"first@x would run", "second@y would run", "third@y would run"}; !slices.Equal(r.events, want) {
		t.Errorf("%v", r.events)
	}
	first.did.Store("x", true)
	if err := e.Run(context.Background(), g); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("%v", err)
	}
}

// A check of what an earlier step brings cannot be made in a dry run either. One that
// nothing before it changes fails there as it does elsewhere.
func TestDryRunOfAFailingCheck(t *testing.T) {
	first, check := s("first"), s("check")
	check.m.Always, check.m.ReadOnly = true, true
	check.run = func(context.Context, *steps.Host) error { return errors.New("no such file") }
	g := graph(t, func() plan.Fragment { return plan.Seq(plan.On(hosts("x"), first), plan.On(hosts("y"), check)) })
	e, r := engine(t)
	e.DryRun = true
	if err := e.Run(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	if want := []string{"first@x would run", "check@y would run"}; !slices.Equal(r.events, want) {
		t.Errorf("%v", r.events)
	}
	first.did.Store("x", true)
	if err := e.Run(t.Context(), g); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("%v", err)
	}
}

// TestUndoingEnds: a host that says nothing does not hold up a run that was broken off.
func TestUndoingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := s("a")
		ctx, cancel := context.WithCancel(t.Context())
		a.run = func(ctx context.Context, _ *steps.Host) error {
			cancel() // Ctrl-C, for the second time
			return ctx.Err()
		}
		a.rollback = func(ctx context.Context, _ *steps.Host) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(24 * time.Hour):
				return nil
			}
		}
		e, _ := engine(t)
		var undone error
		e.Report = func(ev Event) {
			if ev.Outcome == RolledBack {
				undone = ev.Err
			}
		}
		begin := time.Now()
		_ = e.Run(ctx, graph(t, func() plan.Fragment { return plan.On(hosts("x"), a) }))
		if took := time.Since(begin); took != undoTime || undone == nil || !strings.Contains(undone.Error(), "took longer than 15m") {
			t.Errorf("after %s: %v", took, undone)
		}
	})
}
