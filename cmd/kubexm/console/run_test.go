package console

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/installer/engine"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// golden compares got with a file in testdata, or with -update writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: go test -update writes it", err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s is another (-want +got):\n%s", path, d)
	}
}

// watching is a view of n hosts that joined one after another, at a fixed time.
func watching(n, pressed int) *RunView {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	begin := now
	v := &RunView{
		title: "create demo", begin: begin, busy: map[string]*busy{},
		now: func() time.Time { return now }, pressed: func() int { return pressed },
	}
	v.tally.Total = 3*n + 10
	send := func(o engine.Outcome, task, step, host string) {
		v.Event(engine.Event{Outcome: o, Task: task, Step: step, Node: task + "/" + step, Host: host})
	}
	for i := range n {
		host := fmt.Sprintf("worker-%03d", i+1)
		send(engine.Started, "preflight/check-hosts", "preflight.system", host)
		send(engine.Checked, "preflight/check-hosts", "preflight.system", host)
		if i%2 == 0 {
			send(engine.Started, "node/prepare", "node.sysctls", host)
			send(engine.Skipped, "node/prepare", "node.sysctls", host)
		}
		now = now.Add(1300 * time.Millisecond)
		send(engine.Started, "runtime/preload-images", "containerd.preload-images", host)
	}
	send(engine.Started, "control-plane/init-control-plane", "kubeadm.init-control-plane", "master-1")
	send(engine.Retried, "control-plane/init-control-plane", "kubeadm.init-control-plane", "master-1")
	now = now.Add(75 * time.Second)
	return v
}

// TestFrames draws the view for windows of all kinds. Nothing is wider than the
// window, and nothing higher: a frame that does not fit cannot be taken away.
func TestFrames(t *testing.T) {
	var b strings.Builder
	for _, c := range []struct {
		hosts, width, height, pressed int
	}{
		{3, 100, 24, 0}, {100, 100, 24, 0}, {100, 60, 10, 0}, {3, 40, 24, 0}, {3, 20, 24, 0},
		{100, 80, 5, 0}, {100, 80, 3, 0}, {100, 80, 1, 0}, {3, 100, 24, 1}, {3, 100, 24, 2}, {0, 80, 24, 0},
	} {
		v := watching(c.hosts, c.pressed)
		lines := v.Frame(c.width, c.height)
		fmt.Fprintf(&b, "-- %d hosts, window of %d x %d, Ctrl-C %d times --\n", c.hosts, c.width, c.height, c.pressed)
		for _, l := range lines {
			l = Clip(l, c.width)
			fmt.Fprintln(&b, l)
			if n := len([]rune(l)); n > c.width {
				t.Errorf("a line of %d columns in a window of %d: %s", n, c.width, l)
			}
		}
		if len(lines) > c.height {
			t.Errorf("%d lines in a window of %d", len(lines), c.height)
		}
	}
	golden(t, "frames.txt", b.String())
}

// terminal is what a terminal shows of what is written to it, as far as a screen
// makes use of one. Lines that scrolled out at the top stay in it.
type terminal struct {
	mu            sync.Mutex
	rows          []string
	y, x          int
	width, height int
}

func (m *terminal) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows == nil {
		m.rows = []string{""}
	}
	for s := string(b); s != ""; {
		switch {
		case strings.HasPrefix(s, "\x1b["):
			end := strings.IndexFunc(s[2:], func(r rune) bool { return r < '0' || r > '9' }) + 2
			n, err := strconv.Atoi(s[2:end])
			switch {
			case s[end] == 'A' && err == nil:
				m.y = max(m.y-n, len(m.rows)-m.height, 0)
			case s[end] == 'J':
				m.rows = append(m.rows[:m.y:m.y], string([]rune(m.rows[m.y])[:m.x]))
			default:
				return 0, fmt.Errorf("unknown escape %q", s[:end+1])
			}
			s = s[end+1:]
			continue
		case s[0] == '\n':
			m.down()
			m.x, s = 0, s[1:]
		case s[0] == '\r':
			m.x, s = 0, s[1:]
		default:
			r := []rune(s)[0]
			if m.x == m.width {
				m.down()
				m.x = 0
			}
			row := []rune(m.rows[m.y])
			row = append(row[:m.x], r)
			m.rows[m.y] = string(row)
			m.x++
			s = s[len(string(r)):]
		}
	}
	return len(b), nil
}

func (m *terminal) down() {
	if m.y++; m.y == len(m.rows) {
		m.rows = append(m.rows, "")
	}
}

// resize folds what stands there, as terminals do.
func (m *terminal) resize(width, height int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var rows []string
	for i, r := range m.rows {
		if i == m.y {
			m.y = len(rows)
		}
		for len([]rune(r)) > width {
			rows, r = append(rows, string([]rune(r)[:width])), string([]rune(r)[width:])
		}
		rows = append(rows, r)
	}
	m.rows, m.width, m.height = rows, width, height
}

func (m *terminal) size() (int, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.width, m.height
}

func (m *terminal) shows() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.rows, "\n")
}

// hand gives a screen whose clock the test turns.
func hand(m *terminal) (*Screen, chan time.Time) {
	tick := make(chan time.Time)
	return &Screen{out: m, size: m.size, after: func(time.Duration) <-chan time.Time { return tick }}, tick
}

// TestScreen: lines scroll by above the frame, whatever happens to the window,
// and nothing of the frame is left at the end.
func TestScreen(t *testing.T) {
	m := &terminal{width: 40, height: 8}
	s, tick := hand(m)
	fmt.Fprintln(s, "before")
	hide := s.Show(func(w, _ int) []string {
		return []string{"head " + strings.Repeat("=", w), "  worker-001  kubeadm.join-worker", "foot"}
	})
	want := func(when string, lines ...string) {
		t.Helper()
		if d := cmp.Diff(strings.Join(lines, "\n")+"\n", m.shows()); d != "" {
			t.Errorf("%s (-want +got):\n%s", when, d)
		}
	}
	bar := func(n int) string { return strings.Repeat("=", n) + "…" }
	want("at first", "before", "head "+bar(34), "  worker-001  kubeadm.join-worker", "foot")
	fmt.Fprint(s, "one\ntw")
	want("a line and a half", "before", "one", "head "+bar(34), "  worker-001  kubeadm.join-worker", "foot")
	fmt.Fprintln(s, "o")
	want("the other half", "before", "one", "two", "head "+bar(34), "  worker-001  kubeadm.join-worker", "foot")
	m.resize(21, 8)
	tick <- time.Time{}
	fmt.Fprintln(s, strings.Repeat("wide ", 6))
	want("a window made narrow", "before", "one", "two", "wide wide wide wide w", "ide wide ", "head "+bar(15), "  worker-001  kubead…", "foot")
	m.resize(60, 8)
	fmt.Fprint(s, "no end")
	hide()
	hide()
	want("at the end", "before", "one", "two", "wide wide wide wide w", "ide wide ", "no end")
	fmt.Fprintln(s, "after")
	want("after it", "before", "one", "two", "wide wide wide wide w", "ide wide ", "no end", "after")
}

// TestScreenIsShared: lines, the clock and the events of a run come from several
// goroutines.
func TestScreenIsShared(t *testing.T) {
	m := &terminal{width: 80, height: 24}
	s := &Screen{out: m, size: m.size, after: func(time.Duration) <-chan time.Time { return time.After(100 * time.Microsecond) }}
	v := watching(3, 0)
	hide := s.Show(v.Frame)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 50 {
				v.Event(engine.Event{Outcome: engine.Started, Node: "n", Host: fmt.Sprint(i, j)})
				fmt.Fprintf(s, "line %d %d\n", i, j)
				v.Event(engine.Event{Outcome: engine.Ran, Node: "n", Host: fmt.Sprint(i, j)})
			}
		})
	}
	wg.Wait()
	hide()
	if got := strings.Count(m.shows(), "\n"); got != 200 || strings.Contains(m.shows(), "Ctrl-C") {
		t.Errorf("%d lines, want 200:\n%s", got, m.shows())
	}
}

// TestScreenWithoutFrame passes everything on as it comes.
func TestScreenWithoutFrame(t *testing.T) {
	var b bytes.Buffer
	s := NewScreen(&b)
	fmt.Fprint(s, "half a line")
	if b.String() != "half a line" {
		t.Errorf("%q", b.String())
	}
	if w, h := s.size(); w != 80 || h != 24 {
		t.Errorf("%d x %d", w, h)
	}
}
