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

// Fails returns the handler of a program that prints says on standard error and exits with
// status 1.
func Fails(says string) func(connector.Cmd, []byte) (connector.Result, bool) {
	return func(connector.Cmd, []byte) (connector.Result, bool) {
		return connector.Result{Exit: 1, Stderr: []byte(says)}, true
	}
}

// Change changes the cluster while programs use it.
func (k *Kube) Change(f func(*Kube)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f(k)
}

// Waits is the conformance test for a wait, on an existing cluster. It must be called in a
// bubble of testing/synctest. ill breaks what the step waits for, and well repairs it. The
// step's progress and its error must contain each of says.
//
// A wait changes nothing and is checked in every run. It waits while a condition is not
// met and reports which. It succeeds when all are met, and fails with the unmet ones at
// its timeout.
func Waits(t *testing.T, c Case, step steps.Step, ill, well func(*Kube), says ...string) {
	t.Helper()
	c = c.complete(t)
	var k *Kube
	c.Before = func(s *conntest.Sim) {
		k = ExistingKube(c.Cluster, s)
		s.AddFile(servingCert, "signed\n", 0o600)
		if c.ChangeCluster != nil {
			c.ChangeCluster(k)
		}
	}
	if m := step.Meta(); !m.ReadOnly || m.Always || m.Timeout <= 0 {
		t.Errorf("a wait requires ReadOnly and a timeout, and excludes Always: %+v", m)
	}
	s := c.Sim(t)
	first := s.Snapshot()
	verdict(t, "with nothing missing, a wait", c, s, step, steps.Done)
	k.Change(ill)
	verdict(t, "with something missing, a wait", c, s, step, steps.Todo)

	var mu sync.Mutex
	var told []string
	h := c.On(t, s, step).WithWaitReport(func(what string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, what)
	})
	ended := make(chan error, 1)
	go func() { ended <- step.Run(t.Context(), h) }()
	time.Sleep(2 * time.Minute)
	select {
	case err := <-ended:
		t.Fatalf("the step did not wait: %v", err)
	default:
	}
	k.Change(well)
	if err := <-ended; err != nil {
		t.Errorf("error although nothing is missing: %v", err)
	}
	verdict(t, "after the wait, it", c, s, step, steps.Done)
	mu.Lock()
	all := strings.Join(told, "\n")
	mu.Unlock()

	k.Change(ill)
	begin := time.Now()
	err := step.Run(t.Context(), c.On(t, s, step))
	if took := time.Since(begin); err == nil || took > step.Meta().Timeout {
		t.Fatalf("the step ended after %s, its timeout is %s: %v", took, step.Meta().Timeout, err)
	}
	if len(steps.Advice(err)) == 0 {
		t.Errorf("%v has no advice", err)
	}
	for _, want := range says {
		if !strings.Contains(err.Error(), want) || !strings.Contains(all, want) {
			t.Errorf("missing %q in\nerror: %v\nprogress: %s", want, err, all)
		}
	}
	k.Change(well)
	same(t, "a wait changes nothing", first, s.Snapshot())
}

// Again is the conformance test for an op.Again: each run executes it once, Precheck then
// returns Done, and the host's files do not change.
func Again(t *testing.T, c Case, step steps.Step) {
	t.Helper()
	c = c.complete(t)
	s := c.Sim(t)
	first := s.Snapshot()
	for range 2 {
		h := c.On(t, s, step)
		for _, want := range []steps.Verdict{steps.Todo, steps.Done} {
			if got, err := step.Precheck(t.Context(), h); err != nil || got != want {
				t.Fatalf("precheck returns %v (%v), want %v", got, err, want)
			}
			if want == steps.Todo {
				must(t, step.Run(t.Context(), h))
			}
		}
		must(t, step.Rollback(t.Context(), h))
	}
	if m := step.Meta(); m.Always || m.ReadOnly || !m.OneWay || m.Risk == steps.Safe {
		t.Errorf("a restart requires OneWay and a Risk, and excludes Always and ReadOnly: %+v", m)
	}
	same(t, "a restart leaves the host as it was", first, s.Snapshot())
}
