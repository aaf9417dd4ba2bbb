package e2e

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// fakeWalk is a walk over no cluster, that writes down what is done to it.
type fakeWalk struct {
	walker
	did    []string
	report string // of a race, for the next who asks
}

func newFakeWalk(legs ...leg) *fakeWalk {
	f := &fakeWalk{}
	f.legs = legs
	f.checkpoint = func(_ testing.TB, name string) error { f.did = append(f.did, "save "+name); return nil }
	f.restore = func(_ testing.TB, name string) error { f.did = append(f.did, "restore "+name); return nil }
	f.races = func() string { r := f.report; f.report = ""; return r }
	f.late = func() bool { return false }
	return f
}

// run walks, with tests that may fail without failing t, and gives which failed.
func (f *fakeWalk) run(t *testing.T) (red []string) {
	t.Helper()
	f.all(func(name string, body func(testing.TB)) {
		if x := attempt(t, body); x.failed {
			red = append(red, name)
		}
	})
	return red
}

// ends gives a leg that ends in each of the ways in turn, and then well.
func (f *fakeWalk) ends(ways ...func(testing.TB)) func(testing.TB) {
	return func(t testing.TB) {
		f.did = append(f.did, "leg")
		if len(ways) > 0 {
			way := ways[0]
			ways = ways[1:]
			way(t)
		}
	}
}

func TestLegs(t *testing.T) {
	fails := func(t testing.TB) { t.Errorf("not as it was to be") }
	stops := func(t testing.TB) { t.Fatal("no way on") }
	skips := func(t testing.TB) { t.Skip("left out") }
	breaks := func(testing.TB) { panic("broken") }
	for _, c := range []struct {
		name     string
		ways     []func(testing.TB)
		race     bool // reported at the first try
		needed   bool
		did      string
		outcomes string
		red      string
		flakes   string
	}{
		{name: "passes", did: "leg, save one, leg, save two, leg", outcomes: "passed, passed, passed"},
		{name: "fails once", ways: []func(testing.TB){fails}, did: "leg, save one, leg, restore one, leg, save two, leg", outcomes: "passed, flaky, passed", flakes: "TestWalk/two\n"},
		{name: "fails twice", ways: []func(testing.TB){fails, stops}, did: "leg, save one, leg, restore one, leg, restore one, leg", outcomes: "passed, failed, passed", red: "two"},
		{name: "fails twice, and is needed", ways: []func(testing.TB){stops, fails}, needed: true, did: "leg, save one, leg, restore one, leg", outcomes: "passed, failed, not run", red: "two"},
		{name: "is left out twice", ways: []func(testing.TB){skips, skips}, did: "leg, save one, leg, restore one, leg, restore one, leg", outcomes: "passed, failed, passed", red: "two"},
		{name: "races", race: true, did: "leg, save one, leg, restore one, leg", outcomes: "passed, raced, passed", red: "two"},
		{name: "panics", ways: []func(testing.TB){breaks}, did: "leg, save one, leg, restore one, leg", outcomes: "passed, panicked, passed", red: "two"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "flakes")
			t.Setenv("STAGE_FLAKES", file)
			f := newFakeWalk(leg{name: "one", changes: true}, leg{name: "two", changes: true, needed: c.needed}, leg{name: "three"})
			two := f.ends(c.ways...)
			f.legs[0].run, f.legs[2].run = f.ends(), f.ends()
			f.legs[1].run = func(t testing.TB) {
				if c.race {
					f.report = "WARNING: DATA RACE"
				}
				two(t)
			}
			red := f.run(t)
			var outcomes []string
			for _, r := range f.table {
				outcomes = append(outcomes, r.Outcome)
			}
			flakes, _ := os.ReadFile(file)
			for what, is := range map[string][2]string{
				"did": {strings.Join(f.did, ", "), c.did}, "outcomes": {strings.Join(outcomes, ", "), c.outcomes},
				"red": {strings.Join(red, ", "), c.red}, "flakes": {string(flakes), c.flakes},
			} {
				if is[0] != is[1] {
					t.Errorf("%s: %q, want %q", what, is[0], is[1])
				}
			}
		})
	}
}

// After the deadline only legs begin that are needed, or that always run.
func TestLateLegs(t *testing.T) {
	past, err := after("1")
	if err != nil {
		t.Fatal(err)
	}
	f := newFakeWalk(leg{name: "one", needed: true}, leg{name: "two", changes: true}, leg{name: "three", always: true})
	f.late = past
	for i := range f.legs {
		f.legs[i].run = f.ends()
	}
	var skipped []string
	f.all(func(name string, body func(testing.TB)) {
		x := &skipper{TB: t}
		ended := make(chan struct{})
		go func() { defer close(ended); body(x) }()
		if <-ended; x.skipped {
			skipped = append(skipped, name)
		}
	})
	var outcomes []string
	for _, r := range f.table {
		outcomes = append(outcomes, r.Outcome)
	}
	if !slices.Equal(skipped, []string{"two"}) {
		t.Errorf("skipped %v, want two", skipped)
	}
	if is, want := strings.Join(outcomes, ", "), "passed, too late, passed"; is != want || !slices.Equal(f.did, []string{"leg", "leg"}) {
		t.Errorf("%s, want %s; did %v", is, want, f.did)
	}
	for in, want := range map[string]bool{"": false, "1": true, "99999999999": false} {
		if late, err := after(in); err != nil || late() != want {
			t.Errorf("%q: %v", in, err)
		}
	}
	if _, err := after("soon"); err == nil {
		t.Error("a deadline that is no number was accepted")
	}
}

// skipper is a test that notes that it was skipped.
type skipper struct {
	testing.TB
	skipped bool
}

func (s *skipper) Skip(...any) { s.skipped = true; runtime.Goexit() }

// A try ends as a test does: what it cleans up comes last first, its folder goes with
// it, and nothing of it fails the test that it belongs to.
func TestTry(t *testing.T) {
	var order []string
	dir := ""
	x := attempt(t, func(t testing.TB) {
		dir = t.TempDir()
		t.Cleanup(func() { order = append(order, "first"); t.Error("too late, and counted") })
		t.Cleanup(func() { order = append(order, "second"); t.FailNow() })
		func() {
			t.Helper()
			t.Logf("logged in %s", dir)
		}()
		order = append(order, "leg")
	})
	if !x.Failed() || x.panicked || !slices.Equal(order, []string{"leg", "second", "first"}) {
		t.Errorf("failed %v, panicked %v, in the order %q", x.Failed(), x.panicked, order)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is still there", dir)
	}
	if t.Failed() {
		t.Error("the try failed its test")
	}
	stop := func(t testing.TB) { t.Fatal("and no further") }
	if x := attempt(t, func(t testing.TB) { stop(t); order = nil }); !x.Failed() || order == nil {
		t.Error("a try went on after it had ended")
	}
}
