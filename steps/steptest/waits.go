package steptest

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// Fails is a program that says something on standard error, and ends with status 1.
func Fails(says string) func(connector.Cmd, []byte) (connector.Result, bool) {
	return func(connector.Cmd, []byte) (connector.Result, bool) {
		return connector.Result{Exit: 1, Stderr: []byte(says)}, true
	}
}

// Change changes what the cluster is like while programs may ask it.
func (k *Kube) Change(f func(*Kube)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f(k)
}

// Waits holds a step that waits to its laws, on a cluster that stands. It is called in a
// bubble of testing/synctest. ill takes away what the step waits for, well brings it back,
// and each of says is in what it says meanwhile, and in the error that it ends with.
//
// A wait only looks, and looks again in every run; it waits while something is missing,
// says what, ends well once nothing is, and ends with what is missing when its time is up.
func Waits(t *testing.T, c Case, step steps.Step, ill, well func(*Kube), says ...string) {
	t.Helper()
	c = c.complete(t)
	var k *Kube
	c.Before = func(s *conntest.Sim) {
		k = StandingKube(c.Cluster, s)
		s.AddFile(servingCert, "signed\n", 0o600)
		if c.Stands != nil {
			c.Stands(k)
		}
	}
	if m := step.Meta(); !m.LooksOnly || m.Always || m.Timeout <= 0 {
		t.Errorf("a wait looks only, is observed, and has an end: %+v", m)
	}
	s := c.Sim(t)
	first := s.Snapshot()
	verdict(t, "with nothing missing, a wait", c, s, step, steps.Done)
	k.Change(ill)
	verdict(t, "with something missing, a wait", c, s, step, steps.Todo)

	var mu sync.Mutex
	var told []string
	h := c.On(t, s, step).WithWaits(func(what string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, what)
	})
	ended := make(chan error, 1)
	go func() { ended <- step.Run(t.Context(), h) }()
	time.Sleep(2 * time.Minute)
	select {
	case err := <-ended:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	k.Change(well)
	if err := <-ended; err != nil {
		t.Errorf("nothing is missing, and %v", err)
	}
	verdict(t, "after the wait, it", c, s, step, steps.Done)
	mu.Lock()
	all := strings.Join(told, "\n")
	mu.Unlock()

	k.Change(ill)
	begin := time.Now()
	err := step.Run(t.Context(), c.On(t, s, step))
	if took := time.Since(begin); err == nil || took > step.Meta().Timeout {
		t.Fatalf("it ended after %s, its end is %s: %v", took, step.Meta().Timeout, err)
	}
	if len(steps.Advice(err)) == 0 {
		t.Errorf("%v has no advice", err)
	}
	for _, want := range says {
		if !strings.Contains(err.Error(), want) || !strings.Contains(all, want) {
			t.Errorf("it does not name %q:\nerror: %v\nsaid: %s", want, err, all)
		}
	}
	k.Change(well)
	same(t, "a wait changes nothing", first, s.Snapshot())
}

// Again holds a step of op.Again to its laws: each run does it once, it says itself that
// it did, and the host's files stay as they were.
func Again(t *testing.T, c Case, step steps.Step) {
	t.Helper()
	c = c.complete(t)
	s := c.Sim(t)
	first := s.Snapshot()
	for range 2 {
		h := c.On(t, s, step)
		for _, want := range []steps.Verdict{steps.Todo, steps.Done} {
			if got, err := step.Precheck(t.Context(), h); err != nil || got != want {
				t.Fatalf("precheck says %v (%v), want %v", got, err, want)
			}
			if want == steps.Todo {
				must(t, step.Run(t.Context(), h))
			}
		}
		must(t, step.Rollback(t.Context(), h))
	}
	if m := step.Meta(); m.Always || m.LooksOnly || !m.OneWay || m.Risk == steps.Safe {
		t.Errorf("a restart is done once, disturbs and cannot be undone: %+v", m)
	}
	same(t, "a restart leaves the host as it was", first, s.Snapshot())
}
