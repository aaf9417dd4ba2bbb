package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/report"
)

// TallyText tells in words what was counted.
func TallyText(t report.Tally) string {
	were := "were"
	if t.Done == 1 {
		were = "was"
	}
	return fmt.Sprintf("%s ran, %d %s done already, %s passed", Count(t.Ran, "step"), t.Done, were, Count(t.Checked, "check"))
}

// busy is one step that runs on a host.
type busy struct {
	host, step, task string
	since            time.Time
	tries            int    // that failed
	waits            string // what for; empty where it does not say
}

// RunView is what a person watching a run sees: what runs where, for how long,
// and how much is over.
type RunView struct {
	title   string
	pressed func() int // how often Ctrl-C was
	now     func() time.Time
	begin   time.Time

	mu    sync.Mutex
	tally report.Tally
	busy  map[string]*busy // by node and host
}

// NewRunView is the view of a run that begins now, with total steps on hosts; pressed
// tells how often Ctrl-C was.
func NewRunView(title string, total int, pressed func() int) *RunView {
	return &RunView{title: title, now: time.Now, begin: time.Now(), busy: map[string]*busy{}, pressed: pressed, tally: report.Tally{Total: total}}
}

// Event takes one event in.
func (v *RunView) Event(e engine.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tally.Add(e.Outcome)
	key := e.Node + "@" + e.Host
	switch e.Outcome {
	case engine.Started, engine.RollingBack:
		v.busy[key] = &busy{host: e.Host, step: e.Step, task: e.Task, since: v.now()}
	case engine.Retried:
		if b := v.busy[key]; b != nil {
			b.tries++
		}
	case engine.Waits:
		if b := v.busy[key]; b != nil {
			b.waits = e.For
		}
	default:
		delete(v.busy, key)
	}
}

// Counted gives the counts so far.
func (v *RunView) Counted() report.Tally {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.tally
}

// Longest gives the host and the name of the step that runs longest, for how long, and how
// many others run; ok is false where none does.
func (v *RunView) Longest() (host, step string, since time.Duration, others int, ok bool) {
	bs := v.working()
	if len(bs) == 0 {
		return "", "", 0, 0, false
	}
	return bs[0].host, bs[0].step, time.Since(bs[0].since), len(bs) - 1, true
}

// Took is how long the run takes so far.
func (v *RunView) Took() time.Duration { return time.Since(v.begin) }

// Title is what the run is called.
func (v *RunView) Title() string { return v.title }

// working gives what runs, the longest first.
func (v *RunView) working() []busy {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []busy
	for _, b := range v.busy {
		out = append(out, *b)
	}
	slices.SortFunc(out, func(a, b busy) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.host, b.host), cmp.Compare(a.step, b.step))
	})
	return out
}

// mostBusy is how many running steps a frame shows at most: it leaves room for
// the lines above it.
const mostBusy = 12

// Frame draws the view for a window.
func (v *RunView) Frame(width, height int) []string {
	bs, t := v.working(), v.Counted()
	out := []string{v.head(width, &t)}
	foot := v.foot(len(bs), t.Failed > 0)
	room := min(height-3, mostBusy) // head, tasks and foot
	if room < 1 {
		return append(out, foot)[:min(2, max(height, 0))]
	}
	out = append(out, "  "+tasks(bs))
	shown := bs[:min(len(bs), room)]
	if len(shown) < len(bs) {
		shown = bs[:room-1]
	}
	host := 0
	for _, b := range shown {
		host = max(host, len(b.host))
	}
	host = min(host, max(width/3, 8))
	for _, b := range shown {
		line := fmt.Sprintf("  %-*s  %6s  %s", host, Clip(b.host, host), Brief(v.now().Sub(b.since)), b.step)
		if b.tries > 0 {
			line += fmt.Sprintf("  try %d", b.tries+1)
		}
		if b.waits != "" {
			line = Clip(line+": "+b.waits, width)
		}
		out = append(out, line)
	}
	if n := len(bs) - len(shown); n > 0 {
		out = append(out, fmt.Sprintf("  +%d more", n))
	}
	return append(out, foot)
}

// foot is the line that says what is waited for, and what Ctrl-C does.
func (v *RunView) foot(running int, failed bool) string {
	waiting := "undoing what was left half way"
	if running > 0 {
		waiting = "waiting for the end of " + Count(running, "running step")
	}
	switch n := v.pressed(); {
	case n > 1:
		return "breaking off: " + waiting + "; Ctrl-C once more ends kubexm at once"
	case n == 1:
		return "stopping: " + waiting + "; Ctrl-C once more breaks off"
	case failed:
		return "failed: " + waiting + "; Ctrl-C twice breaks off"
	}
	return "Ctrl-C once lets running steps end, twice breaks off"
}

// head is the line that says how far the run is. A narrow window loses the bar
// first, then the counts.
func (v *RunView) head(width int, t *report.Tally) string {
	far := fmt.Sprintf("%d/%d  %s", t.Ended(), t.Total, Brief(v.now().Sub(v.begin)))
	var parts []string
	for _, p := range []struct {
		n    int
		word string
	}{{t.Ran, "ran"}, {t.Would, "would run"}, {t.Done, "done before"}, {t.Checked, "checked"}, {t.Failed, "failed"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.word))
		}
	}
	counts := strings.Join(parts, ", ")
	const bar = 24
	filled := bar
	if t.Total > 0 {
		filled = min(bar*t.Ended()/t.Total, bar)
	}
	drawn := "[" + strings.Repeat("=", filled) + strings.Repeat("-", bar-filled) + "]"
	for _, line := range []string{
		v.title + "  " + drawn + "  " + far + "  " + counts,
		v.title + "  " + far + "  " + counts,
		v.title + "  " + far,
	} {
		if line = strings.TrimRight(line, " "); len(line) <= width {
			return line
		}
	}
	return far
}

// tasks names the parts of the plan that are at work, the longest at it first.
func tasks(bs []busy) string {
	var names []string
	for _, b := range bs {
		if !slices.Contains(names, b.task) {
			names = append(names, b.task)
		}
	}
	if len(names) > 3 {
		names = append(names[:2], fmt.Sprintf("+%d more", len(names)-2))
	}
	return strings.Join(names, ", ")
}

// Brief says how long something takes, in the digits that matter.
func Brief(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Truncate(100*time.Millisecond).Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}
