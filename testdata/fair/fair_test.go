package fair

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// told is a test that fails into a string.
type told struct {
	testing.TB
	errors, logs []string
	ends         []func()
}

func (*told) Helper()                     {}
func (o *told) Errorf(f string, a ...any) { o.errors = append(o.errors, fmt.Sprintf(f, a...)) }
func (o *told) Logf(f string, a ...any)   { o.logs = append(o.logs, fmt.Sprintf(f, a...)) }
func (o *told) Fatalf(f string, a ...any) { o.Errorf(f, a...) }
func (o *told) Failed() bool              { return len(o.errors) > 0 }
func (o *told) Cleanup(f func())          { o.ends = append(o.ends, f) }

func TestLimit(t *testing.T) {
	const limit = time.Second
	quiet := load{average: 0.2, cores: 2}
	after := func(average float64, idle, own time.Duration) load { // ten seconds of two processors later
		return load{average: average, cores: 2, all: 20 * time.Second, idle: idle, own: own}
	}
	for _, c := range []struct {
		name         string
		before, then load
		unknown      bool
		took         time.Duration
		want         string // in an error
	}{
		{"quick", quiet, after(0.2, 19*time.Second, 0), false, limit, ""},
		{"slow, and nobody else is at work", quiet, after(0.3, 19*time.Second, 0), false, limit + 1, "idle"},
		{"slow by its own work", quiet, after(1.9, 0, 20*time.Second), false, limit + 1, "idle"},
		{"slow beside others, whom the average does not show yet", quiet, after(0.9, 10*time.Second, time.Second), false, limit + 1, ""},
		{"slow beside others who have just ended", load{average: 2, cores: 2}, after(0.9, 19*time.Second, 0), false, limit + 1, ""},
		{"slow beside others who have come", quiet, after(2, 19*time.Second, 0), false, limit + 1, ""},
		{"slow, and who knows why", quiet, after(0, 19*time.Second, 0), true, limit + 1, ""},
		{"too slow for any machine", quiet, after(9, 0, 0), false, 10*limit + 1, "busy"},
	} {
		reads := []load{c.before, c.then}
		clock := start(func() (load, bool) { l := reads[0]; reads = reads[1:]; return l, !c.unknown })
		var o told
		clock.Limit(&o, c.took, limit)
		if got := strings.Join(o.errors, "\n"); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
		if want := c.took > limit && c.want == ""; want != (len(o.logs) > 0) {
			t.Errorf("%s: logged %q", c.name, o.logs)
		}
	}
}

// TestTook: what counts as taken is the time since the start.
func TestTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o told
		c := start(func() (load, bool) { return load{}, false })
		time.Sleep(time.Second)
		if c.Within(&o, time.Second); c.Took() != time.Second || o.Failed() {
			t.Errorf("took %s: %q", c.Took(), o.errors)
		}
		time.Sleep(10 * time.Second)
		if c.Within(&o, time.Second); len(o.errors) != 1 {
			t.Errorf("after %s: %q", c.Took(), o.errors)
		}
	})
}

// TestBusy: other processes are seen as soon as they work, and this one's own work
// is not taken for theirs.
func TestBusy(t *testing.T) {
	before, ok := current()
	if !ok {
		t.Skip("the kernel does not tell how busy it is")
	}
	now := before
	for end := time.Now().Add(time.Minute); now.own-before.own < 100*time.Millisecond; now, _ = current() {
		if time.Now().After(end) {
			t.Fatalf("a minute of work took %s of a processor", now.own-before.own)
		}
	}
	loop := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	if err := loop.Start(); err != nil {
		t.Fatal(err)
	}
	c := start(func() (load, bool) { l, ok := current(); l.average = 0; return l, ok })
	time.Sleep(2 * time.Second)
	if why := c.busy(); !strings.Contains(why, "others took") {
		t.Errorf("beside a process that never rests the machine is busy: %q", why)
	}
	_ = loop.Process.Kill()
	_ = loop.Wait() // killed
}

func TestRand(t *testing.T) {
	draw := func(seed string) (uint64, *told) {
		t.Setenv(seedVariable, seed)
		o := &told{}
		return Rand(o).Uint64(), o
	}
	first, o := draw("")
	if again, _ := draw(""); again != first {
		t.Error("two runs have different input")
	}
	if same, _ := draw("1"); same != first {
		t.Error("the seed 1 is not that of a plain run")
	}
	if other, _ := draw("2"); other == first {
		t.Error("another seed gives the same input")
	}
	one, _ := draw("random")
	if two, _ := draw("random"); one == two {
		t.Error("random gives the same input twice")
	}
	o.ends[0]()
	if len(o.logs) > 0 {
		t.Errorf("a test that passed names its seed: %q", o.logs)
	}
	_, o = draw("7")
	o.Errorf("it fails")
	if o.ends[0](); !strings.Contains(strings.Join(o.logs, ""), "KUBEXM_SEED=7") {
		t.Errorf("a test that failed says %q", o.logs)
	}
	if _, o = draw("seven"); !strings.Contains(strings.Join(o.errors, ""), "KUBEXM_SEED") {
		t.Errorf("no number: %q", o.errors)
	}
}
