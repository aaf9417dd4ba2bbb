package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/testdata/lab"
)

// told is what a run tells of one step, see docs/reference/run-events.md.
type told struct {
	Type, Step, Host, Outcome string
	Time                      time.Time
}

// watched runs kubexm and hands each event to see, while the
// run goes on. What see is given kills the run.
func (s *labSite) watched(t testing.TB, see func(e told, kill func()), args ...string) result {
	t.Helper()
	began := time.Now()
	args = append(args, "-o", "json", "--workdir", s.dir)
	cmd := s.host().Command(t.Context(), theProgram(t, s.program), args...)
	cmd.Env = append(os.Environ(), "HOME="+s.dir, "SITE_PASSWORD="+lab.Password)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := func() { _ = cmd.Process.Kill() }
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil { // half a line is what a killed run leaves
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			break
		}
		var e told
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		see(e, kill)
	}
	err = cmd.Wait()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return result{code: cmd.ProcessState.ExitCode(), stderr: errs.String(), took: time.Since(began)}
}

// moment is a point of a run: so long after a step began on a host, or when the
// next one began where the run is faster than the one that was recorded.
type moment struct {
	step, host string
	after      time.Duration
	next       told // nothing for the last step
}

func (m moment) String() string {
	return m.step + " on " + m.host + " + " + m.after.Round(10*time.Millisecond).String()
}

// course is what a run that nobody disturbed did, in time.
type course struct {
	began  time.Time
	starts []told // in the order of time
	ends   []told
	length time.Duration
}

// recorded runs kubexm to its end and keeps its course.
func (s *labSite) recorded(t testing.TB, args ...string) course {
	t.Helper()
	c := course{began: time.Now()}
	r := s.watched(t, func(e told, _ func()) {
		switch e.Outcome {
		case "started":
			c.starts = append(c.starts, e)
		case "ran":
			c.ends = append(c.ends, e)
		}
	}, args...)
	if r.code != 0 {
		t.Fatalf("kubexm %s: exit %d\n%s", strings.Join(args, " "), r.code, r.stderr)
	}
	c.length = r.took
	return c
}

// split gives what comes before a step begins on a host, and the rest.
func (c course) split(t *testing.T, m moment) (before, after course) {
	t.Helper()
	at := slices.IndexFunc(c.starts, func(e told) bool { return e.Step == m.step && e.Host == m.host })
	if at <= 0 {
		t.Fatalf("%s is no step on %s with others before it", m.step, m.host)
	}
	return course{starts: c.starts[:at]}, course{starts: c.starts[at:]}
}

// moments draws n points: every other one where a step begins, the rest anywhere in
// time. They come in the order of time.
func (c course) moments(rng *rand.Rand, n int) []moment {
	var drawn []moment
	first := c.starts[0].Time
	length := c.starts[len(c.starts)-1].Time.Sub(first)
	for i := range n {
		if i%2 == 0 {
			e := c.starts[rng.IntN(len(c.starts))]
			drawn = append(drawn, moment{step: e.Step, host: e.Host})
			continue
		}
		point := first.Add(time.Duration(rng.Float64() * float64(length)))
		next, _ := slices.BinarySearchFunc(c.starts, point, func(e told, p time.Time) int { return e.Time.Compare(p) })
		e := c.starts[max(0, next-1)]
		m := moment{step: e.Step, host: e.Host, after: point.Sub(e.Time)}
		if next < len(c.starts) {
			m.next = c.starts[next]
		}
		drawn = append(drawn, m)
	}
	order := func(m moment) int {
		return slices.IndexFunc(c.starts, func(e told) bool { return e.Step == m.step && e.Host == m.host })
	}
	slices.SortFunc(drawn, func(a, b moment) int {
		if d := order(a) - order(b); d != 0 {
			return d
		}
		return int(a.after - b.after)
	})
	return drawn
}

// killedAt runs kubexm and kills it at a moment. It reports whether it still ran.
func (s *labSite) killedAt(t testing.TB, m moment, see func(told), args ...string) bool {
	t.Helper()
	began := false
	r := s.watched(t, func(e told, kill func()) {
		see(e)
		if e.Outcome != "started" {
			return
		}
		if began && e.Step == m.next.Step && e.Host == m.next.Host {
			kill()
			return
		}
		if e.Step != m.step || e.Host != m.host {
			return
		}
		began = true
		if m.after == 0 {
			kill()
			return
		}
		time.AfterFunc(m.after, kill)
	}, args...)
	if r.code > 0 {
		t.Errorf("killed at %s: the run failed by itself, exit %d\n%s", m, r.code, r.stderr)
	}
	return r.code < 0
}
