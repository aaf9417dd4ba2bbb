package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clock is a time that passes only when something runs.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// scenes gives scenarios that were shown one after another, and are all due.
func scenes(names ...string) (all []standing) {
	for i, name := range names {
		all = append(all, standing{scenario: scenario{Name: name, Says: "it works", Tests: []string{"Test"}, Minutes: 4}, effect: effect{Sum: "new"},
			was: shown{Effect: "old", At: time.Date(2026, 1, 10-i, 0, 0, 0, 0, time.UTC)}, state: isDue, why: []string{"its test"}})
	}
	return all
}

// passing runs for a scenario's minutes, and ends as outcomes say.
func passing(c *clock, ran *[]string, outcomes map[string]event) runner {
	return func(_ context.Context, s scenario) (outcome, error) {
		*ran = append(*ran, s.Name)
		c.at = c.at.Add(time.Duration(s.Minutes) * time.Minute)
		o := outcome{took: time.Duration(s.Minutes) * time.Minute, passed: map[string]bool{}, log: "build/" + s.Name}
		e, ok := outcomes[s.Name]
		if !ok {
			e = event{Action: "pass", Test: "Test"}
		}
		o.hear(e)
		return o, nil
	}
}

// TestDueScenariosRun: the oldest first, while there is time; what is left over and
// what does not pass is red, with the command to type.
func TestDueScenariosRun(t *testing.T) {
	for name, c := range map[string]struct {
		due      []string
		deadline time.Duration // after the begin; 0: none
		outcomes map[string]event
		ran      string
		red      []string
	}{
		"nothing is due":        {nil, 0, nil, "", nil},
		"all fit":               {[]string{"a", "b"}, 0, nil, "b a", nil},
		"the newest is left":    {[]string{"a", "b", "c"}, 0, nil, "c b", []string{"make shown SCENARIO=a"}},
		"the deadline is over":  {[]string{"a", "b"}, -time.Minute, nil, "", []string{"make shown SCENARIO=a", "make shown SCENARIO=b"}},
		"the deadline passes":   {[]string{"a", "b"}, time.Minute, nil, "b", []string{"make shown SCENARIO=a"}},
		"one fails":             {[]string{"a", "b"}, 0, map[string]event{"b": {Action: "fail", Test: "Test/sub"}}, "b a", []string{"b after 4m0s: failed: Test/sub", "make shown SCENARIO=b"}},
		"one is skipped":        {[]string{"a"}, 0, map[string]event{"a": {Action: "skip", Test: "Test"}}, "a", []string{"Test was skipped", "make shown SCENARIO=a"}},
		"another test ran":      {[]string{"a"}, 0, map[string]event{"a": {Action: "pass", Test: "TestOther"}}, "a", []string{"Test did not run"}},
		"it cannot be compiled": {[]string{"a"}, 0, map[string]event{"a": {Action: "fail"}}, "a", []string{"failed: the package"}},
	} {
		t.Run(name, func(t *testing.T) {
			now := &clock{time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)}
			l := limits{box: 10 * time.Minute, now: now.now}
			if c.deadline != 0 {
				l.deadline = now.at.Add(c.deadline)
			}
			var out strings.Builder
			var ran []string
			a := app{out: &out, run: passing(now, &ran, c.outcomes), all: append(scenes(c.due...), standing{scenario: scenario{Name: "new"}, state: isNever})}
			err := a.runDue(t.Context(), l)
			if got := strings.Join(ran, " "); got != c.ran || (err != nil) != (c.red != nil) || err != nil && !errors.Is(err, errRed) {
				t.Errorf("ran %q, %v\n%s", got, err, out.String())
			}
			for _, want := range append(c.red, "NEVER SHOWN: new") {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is not in\n%s", want, out.String())
				}
			}
		})
	}
}

// TestALongScenarioRuns: one that takes longer than the box runs when it is the first.
func TestALongScenarioRuns(t *testing.T) {
	now := &clock{time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)}
	all := scenes("a", "b")
	all[1].Minutes = 30
	var ran []string
	_, left, err := walk(t.Context(), of(all, isDue), limits{box: 10 * time.Minute, now: now.now}, passing(now, &ran, nil), func(string) {}, func(standing, outcome) error { return nil })
	if err != nil || strings.Join(ran, " ") != "b" || names(left) != "a" {
		t.Errorf("ran %q, left %s, %v", ran, names(left), err)
	}
}

// TestShow writes down what passed, and nothing else; what was shown stays so until
// its effect changes.
func TestShow(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(shownFile)), 0o755); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	var ran []string
	now := &clock{time.Now()}
	all := scenes("a", "b")
	tab := &table{Scenarios: []scenario{all[0].scenario, all[1].scenario}}
	for i := range all {
		all[i].state = isNever
		all[i].effect.Parts = map[string]string{"hosts": "x"}
	}
	a := app{root: dir, out: &out, run: passing(now, &ran, map[string]event{"b": {Action: "fail", Test: "Test"}}), table: tab, record: record{}, all: all}
	if err := a.show(t.Context(), ""); !errors.Is(err, errRed) {
		t.Errorf("%v", err)
	}
	r, err := readRecord(dir)
	if err != nil || len(r) != 1 || r["a"].Effect != "new" || r["a"].Seconds != 240 || r["a"].Parts["hosts"] != "x" || r["a"].At.IsZero() {
		t.Fatalf("%+v, %v", r, err)
	}
	effects := map[string]effect{"a": all[0].effect, "b": all[1].effect}
	if got := names(of(standings(tab, effects, r), isShown)) + "; " + names(of(standings(tab, effects, r), isNever)); got != "a; b" {
		t.Error(got)
	}
	effects["a"] = effect{Sum: "newer", Parts: map[string]string{"hosts": "y"}}
	if due := of(standings(tab, effects, r), isDue); names(due) != "a" || due[0].expected() != 4*time.Minute || strings.Join(due[0].why, "") != "what it does to hosts" {
		t.Errorf("due: %+v", due)
	}

	ran = nil
	a.run = passing(now, &ran, nil)
	if err := a.show(t.Context(), "b"); err != nil || strings.Join(ran, " ") != "b" {
		t.Errorf("ran %q, %v", ran, err)
	}
	if err := a.show(t.Context(), "c"); err == nil || !strings.Contains(err.Error(), "no scenario \"c\"; there are a, b") {
		t.Errorf("%v", err)
	}
}

// TestMayWait: which scenarios may stay due when there is no time for them.
func TestMayWait(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	was := shown{At: at, Parts: map[string]string{"hosts": "1", "order": "1", "components": "1", "tests": "1", "source": "1"}}
	for name, c := range map[string]struct {
		part string
		days int
		want bool
	}{
		"its test":                  {"tests", 1, true},
		"the order of its steps":    {"order", 1, true},
		"the source that it covers": {"source", 6, true},
		"too long ago":              {"source", 7, false},
		"what it does to hosts":     {"hosts", 1, false},
		"the lab's components":      {"components", 1, false},
	} {
		x := standing{was: was, effect: effect{Parts: map[string]string{"hosts": "1", "order": "1", "components": "1", "tests": "1", "source": "1"}}}
		x.effect.Parts[c.part] = "2"
		if got := x.mayWait(at.AddDate(0, 0, c.days)); got != c.want {
			t.Errorf("%s after %d days: %v", name, c.days, got)
		}
	}
}
