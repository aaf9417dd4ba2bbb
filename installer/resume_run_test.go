package installer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// resuming is a cluster of one host with two steps, of which the second fails
// until it is mended.
type resuming struct {
	t       *testing.T
	sim     *conntest.Sim
	session *Session
	mended  bool
	looked  int // at the first step

	made     bool // by the first step
	oneWay   bool // it cannot be undone
	rollback engine.Rollback
}

func newResuming(t *testing.T) *resuming {
	c := steptest.Cluster(t, steptest.Small)
	r := &resuming{t: t, sim: conntest.New(t)}
	h := steptest.Case{Cluster: c}.NewHost(t, r.sim, op.Ensure("none", nil))
	r.session = sessionOf(t, c, h)
	return r
}

// run carries the pipeline out, and gives what it took over.
func (r *resuming) run(pipeline string, resume bool) (Resumption, error) {
	r.t.Helper()
	done := false
	first := &op.Do{M: steps.Meta{Name: "x.first", OneWay: r.oneWay},
		Done: func(context.Context, *steps.Host) (bool, error) { r.looked++; return r.made, nil },
		Act:  func(context.Context, *steps.Host) error { r.made = true; return nil },
		Undo: func(context.Context, *steps.Host) error { r.made = false; return nil }}
	second := &op.Do{M: steps.Meta{Name: "x.second"},
		Done: func(context.Context, *steps.Host) (bool, error) { return done, nil },
		Act: func(context.Context, *steps.Host) error {
			if done = r.mended; !done {
				return errors.New("no luck")
			}
			return nil
		}}
	g, err := plan.Build(plan.Pipeline{Name: pipeline, WritesRecord: pipeline == "create", Deletes: pipeline == "delete", Modules: []plan.Module{{Name: "m", Plan: plan.Sequential(plan.Task{Name: "t", Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.Hosts(), first, second)
	}})}}}, plan.Scope{Want: r.session.Cluster})
	if err != nil {
		r.t.Fatal(err)
	}
	r.looked = 0
	var took Resumption
	_, err = r.session.Run(r.t.Context(), g, RunOptions{Parallel: 1, Resume: resume, Rollback: r.rollback, Resumed: func(x Resumption) { took = x }})
	return took, err
}

// TestResumePassesOverWhatWasSeenDone, however often a run is cut off, and looks at
// all of it where anything came in between.
func TestResumePassesOverWhatWasSeenDone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		between func(*resuming)
		passed  int
		why     string
	}{
		{"nothing", func(*resuming) {}, 1, ""},
		{"a run that resumed and failed too", func(r *resuming) { _, _ = r.run("create", true) }, 1, ""},
		{"a deletion", func(r *resuming) { _, _ = r.run("delete", false) }, 0, "the last run was a delete"},
		{"a boot", func(r *resuming) { r.sim.Reboot() }, 0, "node1"},
		{"another machine's run", func(r *resuming) { r.sim.AddFile("/run/kubexm/demo.last", "another\n", 0o600) }, 0, "node1"},
		{"another config", func(r *resuming) {
			r.session.Cluster = steptest.Cluster(r.t, strings.Replace(steptest.Small, "v1.34.10", "v1.34.10, maxPods: 42", 1))
		}, 0, "the config has changed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newResuming(t)
			if _, err := r.run("create", false); err == nil {
				t.Fatal("it was to fail")
			}
			c.between(r)
			r.mended = true
			took, err := r.run("create", true)
			if err != nil {
				t.Fatal(err)
			}
			if took.Passed != c.passed || c.why == "" != (took.Why == "") || !strings.Contains(took.Why, c.why) {
				t.Errorf("%+v", took)
			}
			if (r.looked == 0) != (c.passed == 1) {
				t.Errorf("looked at %d times", r.looked)
			}
		})
	}
}

// TestADeletionLeavesNoNote of the runs on a host.
func TestADeletionLeavesNoNote(t *testing.T) {
	t.Parallel()
	r := newResuming(t)
	r.mended = true
	before := len(r.sim.Below("/run"))
	for _, pipeline := range []string{"create", "delete"} {
		if _, err := r.run(pipeline, false); err != nil {
			t.Fatal(err)
		}
		if had := len(r.sim.Below("/run")) > before; had != (pipeline == "create") {
			t.Errorf("after %s: %v", pipeline, r.sim.Below("/run"))
		}
	}
}

// TestResumeDoesAgainWhatWasUndone: what a task's rollback took back is not done any more,
// and what it kept is.
func TestResumeDoesAgainWhatWasUndone(t *testing.T) {
	t.Parallel()
	for oneWay, passed := range map[bool]int{false: 0, true: 1} {
		r := newResuming(t)
		r.rollback, r.oneWay = engine.RollbackTask, oneWay
		if _, err := r.run("create", false); err == nil {
			t.Fatal("it was to fail")
		}
		if r.made != oneWay {
			t.Errorf("after the rollback the first step is done: %t", r.made)
		}
		r.mended = true
		took, err := r.run("create", true)
		if err != nil || took.Passed != passed || took.Why != "" || !r.made {
			t.Errorf("%+v, done: %t, %v", took, r.made, err)
		}
	}
}

// TestARollbackThatIsKilled: what is about to be undone is not done any more.
func TestARollbackThatIsKilled(t *testing.T) {
	t.Parallel()
	for last, want := range map[engine.Outcome]bool{engine.Ran: true, engine.RollingBack: false, engine.RolledBack: false, engine.RollbackEnded: true} {
		text := `{"head":{"run":"r","pipeline":"create"}}` + "\n"
		for _, o := range []engine.Outcome{engine.Ran, last} {
			text += fmt.Sprintf(`{"node":"a","host":"h","outcome":%q}`+"\n", o)
		}
		_, done, err := readJournal([]byte(text))
		if _, ok := done[engine.Key("a", "h")]; err != nil || ok != want {
			t.Errorf("%s: done %t, want %t, %v", last, ok, want, err)
		}
	}
}
