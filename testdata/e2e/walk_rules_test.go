package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// leg is a part of the walk: it finds the cluster in one state and leaves it in
// another, or in the same.
type leg struct {
	name   string
	budget time.Duration // on two idle cores, warm
	// from is the checkpoint that the leg begins at where it is run alone. It is the
	// state that the leg asks for; in the walk it gets what the legs before it left.
	from    string
	changes bool // a checkpoint, named after the leg, is made behind it
	needed  bool // by every leg behind it
	apart   bool // it runs alone and never in the walk
	always  bool // it is run however late it is, as those that are needed
	run     func(testing.TB)
}

// What became of a leg.
const (
	passed   = "passed"
	flaky    = "flaky" // passed at its second try
	failed   = "failed"
	raced    = "raced"    // a data race was reported: no second try makes that good
	panicked = "panicked" // nor that
	notRun   = "not run"  // a leg before it failed that it needs
	tooLate  = "too late" // not begun: the machine has been slow, and the run has to end
)

// walked is one line of the walk's table.
type walked struct {
	Leg     string  `json:"leg"`
	Seconds float64 `json:"seconds"` // of all tries, with what was restored between them
	Saving  float64 `json:"saving"`  // seconds that the checkpoint behind it took
	Budget  float64 `json:"budget"`
	Outcome string  `json:"outcome"`
}

// walker takes a cluster through its life, leg by leg.
type walker struct {
	legs []leg
	// Checkpoints are made and gone back to by these.
	checkpoint, restore func(t testing.TB, name string) error
	races               func() (reports string) // of kubexm, since it was last asked
	late                func() bool             // whether legs that may be left out are left out from here on
	at                  string                  // the checkpoint whose state the next leg finds; "" is none yet
	table               []walked
}

// all runs every leg, each within what sub makes of its name: a test of its own. A
// leg that fails is tried again where it began; one that fails again leaves the
// cluster to the next as it found it. On a slow machine legs are left out at the end: they are
// skipped, which is no failure, and the stage names them.
func (w *walker) all(sub func(name string, body func(testing.TB))) {
	lost := false
	for _, l := range w.legs {
		if l.apart {
			continue
		}
		row := walked{Leg: l.name, Budget: l.budget.Seconds(), Outcome: notRun}
		switch {
		case lost:
		case !l.needed && !l.always && w.late():
			row.Outcome = tooLate
			sub(l.name, func(t testing.TB) {
				t.Skip("too late in the run to begin it, on a machine as slow as this; make walk runs it")
			})
		default:
			began := time.Now()
			sub(l.name, func(t testing.TB) {
				row.Outcome, row.Saving = w.one(t, l)
				if row.Outcome != passed && row.Outcome != flaky {
					t.Fail()
				}
			})
			row.Seconds = time.Since(began).Seconds() - row.Saving
			lost = l.needed && row.Outcome != passed && row.Outcome != flaky
		}
		w.table = append(w.table, row)
	}
}

// one runs a leg, once or twice.
func (w *walker) one(t testing.TB, l leg) (outcome string, saving float64) {
	outcome = w.judged(t, attempt(t, l.run))
	if outcome == failed {
		t.Logf("the leg %s failed; it is tried once more", l.name)
		if !w.back(t) {
			return failed, 0
		}
		if outcome = w.judged(t, attempt(t, l.run)); outcome == passed {
			outcome = flaky
			tellFlake(t, "TestWalk/"+l.name)
		}
	}
	if outcome != passed && outcome != flaky {
		if !l.needed {
			w.back(t)
		}
		return outcome, 0
	}
	if l.changes {
		began := time.Now()
		if err := w.checkpoint(t, l.name); err != nil {
			t.Errorf("checkpoint %s: %v", l.name, err)
			return failed, 0
		}
		w.at, saving = l.name, time.Since(began).Seconds()
	}
	return outcome, saving
}

// after returns what late is where STAGE_DEADLINE has a time, in seconds since 1970; "" has none.
func after(deadline string) (late func() bool, err error) {
	if deadline == "" {
		return func() bool { return false }, nil
	}
	n, err := strconv.ParseInt(deadline, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("STAGE_DEADLINE: %w", err)
	}
	return func() bool { return time.Now().After(time.Unix(n, 0)) }, nil
}

// judged tells what became of a try.
func (w *walker) judged(t testing.TB, x *try) string {
	if reports := w.races(); reports != "" {
		t.Logf("kubexm has a data race:\n%s", reports)
		return raced
	}
	switch {
	case x.panicked:
		return panicked
	case x.failed:
		return failed
	}
	return passed
}

// back restores the checkpoint before the leg. A first leg begins with nothing.
func (w *walker) back(t testing.TB) bool {
	if w.at == "" {
		return true
	}
	began := time.Now()
	if err := w.restore(t, w.at); err != nil {
		t.Logf("restore checkpoint %s: %v", w.at, err)
		return false
	}
	t.Logf("the cluster is as it was at %s again, after %s", w.at, time.Since(began).Round(100*time.Millisecond))
	return true
}

// tellFlake adds a line to the file that the stage runner named, and that it ends its
// summary with.
func tellFlake(t testing.TB, name string) {
	t.Logf("FLAKY %s", name)
	path := os.Getenv("STAGE_FLAKES")
	if path == "" {
		return
	}
	f, err := os.OpenFile(filepath.Clean(path), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = fmt.Fprintln(f, name); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// text is the table as people read it.
func (w *walker) text() string {
	var b strings.Builder
	sum := walked{Leg: "sum"}
	fmt.Fprintf(&b, "%-12s %8s %8s %11s  %s\n", "leg", "seconds", "budget", "checkpoint", "outcome")
	line := func(r walked) {
		fmt.Fprintf(&b, "%-12s %8.1f %8.0f %11.1f  %s\n", r.Leg, r.Seconds, r.Budget, r.Saving, r.Outcome)
	}
	for _, r := range w.table {
		line(r)
		sum.Seconds, sum.Budget, sum.Saving = sum.Seconds+r.Seconds, sum.Budget+r.Budget, sum.Saving+r.Saving
	}
	line(sum)
	return b.String()
}

// report leaves the table for other programs.
func (w *walker) report(path string) error {
	text, err := json.MarshalIndent(w.table, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}
