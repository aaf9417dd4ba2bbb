package installer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestJournalSaysIntentAndOutcome runs a plan of a step that works, one that was
// done before, and one that fails.
func TestJournalSaysIntentAndOutcome(t *testing.T) {
	t.Parallel()
	kase := steptest.Case{}
	c := steptest.Cluster(t, steptest.Small)
	did := false
	act := func(name string, done *bool, err error) steps.Step {
		return &op.Do{
			M:    steps.Meta{Name: name},
			Done: func(context.Context, *steps.Host) (bool, error) { return *done, nil },
			Act:  func(context.Context, *steps.Host) error { *done = err == nil; return err },
			Undo: op.Unwound,
		}
	}
	before, never := true, false
	g, err := plan.Build(plan.Pipeline{Name: "test", Modules: []plan.Module{{Name: "m", Plan: plan.Sequential(plan.Task{Name: "t", Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.Hosts(), act("x.works", &did, nil), act("x.before", &before, nil), act("x.fails", &never, errors.New("no luck")), act("x.never", &never, nil))
	}})}}}, plan.Scope{Want: c})
	if err != nil {
		t.Fatal(err)
	}
	h := kase.NewHost(t, kase.Sim(t), act("x", &did, nil))
	s := sessionOf(t, c, h)
	var heard int
	journal, err := s.Run(t.Context(), g, RunOptions{Parallel: 1, Report: func(engine.Event) { heard++ }})
	var at *steps.Error
	if !errors.As(err, &at) || at.Node != "m/t/x.fails" || at.Host != "node1" {
		t.Fatalf("%v", err)
	}
	text, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(journal); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", st, err)
	}
	var got []string
	lines := bufio.NewScanner(bytes.NewReader(text))
	if head, _, err := readJournal(text); err != nil || !lines.Scan() || head.Pipeline != "test" || head.Run == "" {
		t.Errorf("it begins with %v: %v", head, err)
	}
	var end auditLine
	for lines.Scan() {
		if end.Audit != nil {
			t.Errorf("behind the end: %s", lines.Text())
		}
		if json.Unmarshal(lines.Bytes(), &end) == nil && end.Audit != nil {
			continue
		}
		var e engine.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		if e.Time.IsZero() || e.Module != "m" || e.Task != "m/t" || e.Host != "node1" || e.Node != "m/t/"+e.Step {
			t.Errorf("%s", lines.Text())
		}
		if (e.Error != "") != (e.Outcome == engine.Failed) {
			t.Errorf("%s", lines.Text())
		}
		got = append(got, e.Step+" "+string(e.Outcome))
	}
	if end.Audit == nil || *end.Audit != s.audit.Head() {
		t.Errorf("the journal ends with %+v, the audit log stands at %+v", end.Audit, s.audit.Head())
	}
	want := "x.works started, x.works ran, x.before started, x.before already done, x.fails started, x.fails failed, x.fails rolled back"
	if all := strings.Join(got, ", "); all != want {
		t.Errorf("got  %s\nwant %s", all, want)
	}
	if heard != len(got) {
		t.Errorf("%d events were shown, %d written", heard, len(got))
	}
}

// TestAFullDiskIsNamed: the host is asked once the step has failed, and the run says
// which file system it is.
func TestAFullDiskIsNamed(t *testing.T) {
	t.Parallel()
	kase := steptest.Case{}
	c := steptest.Cluster(t, steptest.Small)
	write := &op.Do{
		M:    steps.Meta{Name: "x.writes"},
		Done: func(context.Context, *steps.Host) (bool, error) { return false, nil },
		Act: func(ctx context.Context, h *steps.Host) error {
			return h.WriteFile(ctx, "/var/lib/x", []byte("text"), runner.Attr{})
		},
	}
	g, err := plan.Build(plan.Pipeline{Name: "test", Modules: []plan.Module{{Name: "m", Plan: plan.Sequential(plan.Task{Name: "t", Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.Hosts(), write)
	}})}}}, plan.Scope{Want: c})
	if err != nil {
		t.Fatal(err)
	}
	sim := kase.Sim(t)
	sim.SetMachine(func(m *conntest.Machine) { m.FreeMiB = 0 })
	sim.Fail(connector.VerbWrite, "/var/lib/x", 1, "cat: write error: No space left on device\n")
	_, err = sessionOf(t, c, kase.NewHost(t, sim, write)).Run(t.Context(), g, RunOptions{Parallel: 1})
	var at *steps.Error
	if !errors.As(err, &at) || !strings.Contains(err.Error(), "m/t/x.writes on node1: ") || !strings.Contains(err.Error(), "/ of node1 has 0 KiB free of 0 KiB, the file needs 1 KiB") {
		t.Errorf("%v", err)
	}
	if advice := strings.Join(steps.Advice(err), "; "); !strings.Contains(advice, "free space on / of node1") || !strings.Contains(advice, "then run the same command again") {
		t.Errorf("%q", advice)
	}
}

// TestJournalsAreTheirOwn: runs that begin in the same second do not share one.
func TestJournalsAreTheirOwn(t *testing.T) {
	t.Parallel()
	w, err := NewWorkdir(t.TempDir(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	s, at, seen := &Session{Workdir: w}, time.Now(), map[string]bool{}
	for range 3 {
		f, err := s.newJournal(at)
		if err != nil {
			t.Fatal(err)
		}
		seen[f.Name()] = true
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(seen) != 3 {
		t.Errorf("%v", seen)
	}
}
