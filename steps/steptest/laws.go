package steptest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/op"
)

// Ensure is the conformance test for a step that ensures resources, and for its removal:
// both are idempotent, Precheck changes nothing, a rollback and a removal restore the
// original state, and an interruption at any command can be undone, resumed or removed.
func Ensure(t *testing.T, c Case, install, remove steps.Step) {
	t.Helper()
	c = c.complete(t)
	if install.Meta().OneWay || install.Meta().Final || !remove.Meta().OneWay {
		t.Errorf("an installation must have an undo, and a removal must not: %+v, %+v", install.Meta(), remove.Meta())
	}
	t.Run("there", func(t *testing.T) { c.there(t, install) })
	t.Run("rollback", func(t *testing.T) {
		s := c.Sim(t)
		first := s.Snapshot()
		h := c.On(t, s, install)
		must(t, install.Run(t.Context(), h))
		must(t, install.Rollback(t.Context(), h))
		same(t, "a rollback leaves the host as it was", first, s.Snapshot())
	})
	t.Run("drift", func(t *testing.T) { c.drift(t, install) })
	t.Run("back", func(t *testing.T) { c.back(t, install, remove) })
	t.Run("untouched", func(t *testing.T) {
		s := c.Sim(t)
		first := s.Snapshot()
		verdict(t, "a removal on an untouched host", c, s, remove, steps.Done)
		must(t, remove.Run(t.Context(), c.On(t, s, remove)))
		same(t, "a removal leaves alone what kubexm never changed", first, s.Snapshot())
	})
	t.Run("broken install", func(t *testing.T) { c.brokenInstall(t, install, remove) })
	t.Run("broken removal", func(t *testing.T) { c.brokenRemoval(t, install, remove) })
}

// Do is the conformance test for an op.Do with Done. It tests the rollback if undoes is
// true, which must match Meta.OneWay.
func Do(t *testing.T, c Case, step steps.Step, undoes bool) {
	t.Helper()
	c = c.complete(t)
	t.Run("there", func(t *testing.T) { c.there(t, step) })
	if m := step.Meta(); !m.ReadOnly && m.OneWay == undoes {
		t.Errorf("the step has an undo: %t, but its Meta.OneWay is %t", undoes, m.OneWay)
	}
	if !undoes {
		return
	}
	t.Run("rollback", func(t *testing.T) {
		s := c.Sim(t)
		first := s.Snapshot()
		h := c.On(t, s, step)
		must(t, step.Run(t.Context(), h))
		must(t, step.Rollback(t.Context(), h))
		same(t, "a rollback leaves the host as it was", first, s.Snapshot())
	})
}

// Check is the conformance test for a check: it changes nothing, and its findings are
// complete. It returns the findings.
func Check(t *testing.T, c Case, step steps.Step) steps.Findings {
	t.Helper()
	c = c.complete(t)
	s := c.Sim(t)
	first := s.Snapshot()
	if !step.Meta().Always {
		t.Error("a check has nothing to observe: Meta.Always is not set")
	}
	if !step.Meta().ReadOnly {
		t.Error("a check changes nothing: Meta.ReadOnly is not set")
	}
	verdict(t, "a check", c, s, step, steps.Todo)
	h := c.On(t, s, step)
	err := step.Run(t.Context(), h)
	must(t, step.Rollback(t.Context(), h))
	same(t, "a check changes nothing", first, s.Snapshot())
	var found steps.Findings
	if err != nil && !errors.As(err, &found) {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Host != c.Host.Name || f.Check != step.Meta().Name || f.What == "" || f.Advice == "" {
			t.Errorf("a finding requires host, check, what and advice: %+v", f)
		}
	}
	return found
}

// there tests Precheck, Diff and Run on an untouched host.
func (c Case) there(t *testing.T, step steps.Step) {
	s := c.Sim(t)
	first := s.Snapshot()
	verdict(t, "an untouched host", c, s, step, steps.Todo)
	if d, ok := step.(steps.Differ); ok {
		changes, err := d.Diff(t.Context(), c.On(t, s, step))
		if err != nil || len(changes) == 0 {
			t.Errorf("a dry run on an untouched host returns %q, %v", changes, err)
		}
	}
	same(t, "Precheck and Diff change nothing", first, s.Snapshot())
	must(t, step.Run(t.Context(), c.On(t, s, step)))
	end := s.Snapshot()
	if step.Meta().ReadOnly {
		same(t, "a step with ReadOnly changes nothing", first, end)
	}
	verdict(t, "after the run", c, s, step, steps.Done)
	must(t, step.Run(t.Context(), c.On(t, s, step)))
	same(t, "a second run changes nothing", end, s.Snapshot())
}

// back tests the removal in a later run: only the host has the original state on record.
func (c Case) back(t *testing.T, install, remove steps.Step) {
	s := c.Sim(t)
	first := s.Snapshot()
	must(t, install.Run(t.Context(), c.On(t, s, install)))
	end := s.Snapshot()
	verdict(t, "a removal after the installation", c, s, remove, steps.Todo)
	if d, ok := remove.(steps.Differ); ok {
		_, err := d.Diff(t.Context(), c.On(t, s, remove))
		must(t, err)
	}
	same(t, "Precheck and Diff of a removal change nothing", end, s.Snapshot())
	must(t, remove.Run(t.Context(), c.On(t, s, remove)))
	same(t, "a removal restores the original state", first, s.Snapshot())
	verdict(t, "after the removal", c, s, remove, steps.Done)
	verdict(t, "installing after the removal", c, s, install, steps.Todo)
	must(t, install.Run(t.Context(), c.On(t, s, install)))
	same(t, "a second installation has the same result", c.settled(end), c.settled(s.Snapshot()))
}

// brokenInstall breaks the connection at each command of an installation.
func (c Case) brokenInstall(t *testing.T, install, remove steps.Step) {
	complete := c.Sim(t)
	first := complete.Snapshot()
	must(t, install.Run(t.Context(), c.On(t, complete, install)))
	end := complete.Snapshot()
	c.everywhere(t, func(t *testing.T, f conntest.Fault) bool {
		s := c.Sim(t)
		h := c.On(t, s, install)
		if !interrupted(t, s, f, func() error { return install.Run(t.Context(), h) }) {
			return false
		}
		// First option: undo.
		must(t, install.Rollback(t.Context(), h))
		same(t, "a rollback after a break restores the original state", first, s.Snapshot())

		// Second option: run again.
		s = c.Sim(t)
		h = c.On(t, s, install)
		interrupted(t, s, f, func() error { return install.Run(t.Context(), h) })
		must(t, install.Run(t.Context(), c.On(t, s, install)))
		verdict(t, "after the second run", c, s, install, steps.Done)
		same(t, "a second run has the result of an uninterrupted one", c.settled(end), c.settled(s.Snapshot()))
		must(t, remove.Run(t.Context(), c.On(t, s, remove)))
		same(t, "a removal after a broken run restores the original state", first, s.Snapshot())

		// Third option: remove.
		s = c.Sim(t)
		h = c.On(t, s, install)
		interrupted(t, s, f, func() error { return install.Run(t.Context(), h) })
		must(t, remove.Run(t.Context(), c.On(t, s, remove)))
		c.forget(t, s)
		same(t, "a removal right after a break restores the original state", first, s.Snapshot())
		return true
	})
}

// brokenRemoval breaks the connection at each command of a removal.
func (c Case) brokenRemoval(t *testing.T, install, remove steps.Step) {
	c.everywhere(t, func(t *testing.T, f conntest.Fault) bool {
		s := c.Sim(t)
		first := s.Snapshot()
		must(t, install.Run(t.Context(), c.On(t, s, install)))
		h := c.On(t, s, remove)
		if !interrupted(t, s, f, func() error { return remove.Run(t.Context(), h) }) {
			return false
		}
		must(t, remove.Rollback(t.Context(), h))
		must(t, remove.Run(t.Context(), c.On(t, s, remove)))
		c.forget(t, s)
		same(t, "a second removal restores the original state", first, s.Snapshot())
		verdict(t, "after the second removal", c, s, remove, steps.Done)
		return true
	})
}

// forget runs the last step of every removal, which deletes what a break left of the
// records themselves.
func (c Case) forget(t *testing.T, s *conntest.Sim) {
	t.Helper()
	forget := op.Remove("forget-records", []op.Resource{op.Records{}})
	must(t, forget.Run(t.Context(), c.On(t, s, forget)))
}

// everywhere calls try with a break before and after each command, until try reports that
// the step ended before the break.
func (c Case) everywhere(t *testing.T, try func(*testing.T, conntest.Fault) bool) {
	places := 0
	for _, after := range []bool{false, true} {
		for at := 1; ; at += c.Every {
			more := false
			ok := t.Run(fmt.Sprintf("%d after=%t", at, after), func(t *testing.T) {
				more = try(t, conntest.Fault{At: at, After: after})
			})
			if !more || !ok {
				break
			}
			places++
		}
	}
	if places == 0 {
		t.Error("the step ran no command")
	}
}

// interrupted calls run with a connection that will break. It reports whether it broke.
func interrupted(t *testing.T, s *conntest.Sim, f conntest.Fault, run func() error) bool {
	t.Helper()
	s.ForgetCalls()
	s.Break(f)
	err := run()
	s.Mend()
	broke := slices.ContainsFunc(s.Calls(), func(c conntest.Call) bool { return c.Err != nil })
	// The wait for a job reconnects and succeeds.
	passes := slices.ContainsFunc(s.Calls(), func(c conntest.Call) bool { return c.Err != nil && strings.HasPrefix(c.Verb, "job.") })
	var broken *connector.BrokenError
	if err != nil && !errors.As(err, &broken) {
		t.Fatalf("unexpected error: %v", err)
	}
	if broke && err == nil && !passes {
		t.Errorf("the break at command %d was ignored", f.At)
	}
	return broke
}

func verdict(t *testing.T, when string, c Case, s *conntest.Sim, step steps.Step, want steps.Verdict) {
	t.Helper()
	got, err := step.Precheck(t.Context(), c.On(t, s, step))
	if err != nil {
		t.Fatalf("%s: precheck: %v", when, err)
	}
	if got != want {
		words := map[steps.Verdict]string{steps.Todo: "todo", steps.Done: "done"}
		t.Errorf("%s is %s, want %s", when, words[got], words[want])
	}
}

func same(t *testing.T, law string, want, got conntest.Snapshot) {
	t.Helper()
	if d := conntest.Diff(want, got); d != "" {
		t.Errorf("%s:\n%s", law, d)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
