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

// TallyText formats the counts of a run.
func TallyText(t report.Tally) string {
	return fmt.Sprintf("%s ran, %d already done, %s passed", FormatCount(t.Ran, "step"), t.Done, FormatCount(t.Checked, "check"))
}

// busy is a step that is running on a host.
type busy struct {
	host, step, task string
	since            time.Time
	tries            int    // failed attempts
	waits            string // what it waits for; "" if unknown
}

// RunView is the state of a run for the live view: running steps by host, their
// durations, and counts.
type RunView struct {
	title   string
	pressed func() int // number of Ctrl-C presses
	now     func() time.Time
	begin   time.Time

	mu    sync.Mutex
	tally report.Tally
	busy  map[string]*busy // by node and host
}

// NewRunView returns the view of a run that begins now, with total steps on hosts;
// pressed returns the number of Ctrl-C presses.
func NewRunView(title string, total int, pressed func() int) *RunView {
	return &RunView{title: title, now: time.Now, begin: time.Now(), busy: map[string]*busy{}, pressed: pressed, tally: report.Tally{Total: total}}
}

// Event updates the view with an event.
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
	case engine.Waiting:
		if b := v.busy[key]; b != nil {
			b.waits = e.Reason
		}
	default:
		delete(v.busy, key)
	}
}

// Counts returns the counts so far.
func (v *RunView) Counts() report.Tally {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.tally
}

// Longest returns host and name of the step that runs longest, its duration, and the
// number of other running steps; ok is false if no step runs.
func (v *RunView) Longest() (host, step string, since time.Duration, others int, ok bool) {
	bs := v.working()
	if len(bs) == 0 {
		return "", "", 0, 0, false
	}
	return bs[0].host, bs[0].step, time.Since(bs[0].since), len(bs) - 1, true
}

// Elapsed returns the duration of the run so far.
func (v *RunView) Elapsed() time.Duration { return time.Since(v.begin) }

// Title returns the title of the run.
func (v *RunView) Title() string { return v.title }

// working returns the running steps, longest first.
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

// mostBusy is the maximum number of running steps in the view; it leaves room for the
// lines above.
const mostBusy = 12

// Frame returns the lines of the view for a window of the given size.
func (v *RunView) Frame(width, height int) []string {
	bs, t := v.working(), v.Counts()
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
		line := fmt.Sprintf("  %-*s  %6s  %s", host, Clip(b.host, host), FormatDuration(v.now().Sub(b.since)), b.step)
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

// foot returns the last line: what the run waits for, and the effect of Ctrl-C.
func (v *RunView) foot(running int, failed bool) string {
	waiting := "undoing incomplete steps"
	if running > 0 {
		waiting = "waiting for " + FormatCount(running, "running step")
	}
	switch n := v.pressed(); {
	case n > 1:
		return "cancelling: " + waiting + "; Ctrl-C again exits immediately"
	case n == 1:
		return "stopping: " + waiting + "; Ctrl-C again cancels them"
	case failed:
		return "failed: " + waiting + "; Ctrl-C twice cancels them"
	}
	return "Ctrl-C stops after running steps, twice cancels them"
}

// head returns the first line: title, progress and counts. In a narrow window the bar is
// left out first, then the counts.
func (v *RunView) head(width int, t *report.Tally) string {
	far := fmt.Sprintf("%d/%d  %s", t.Ended(), t.Total, FormatDuration(v.now().Sub(v.begin)))
	var parts []string
	for _, p := range []struct {
		n    int
		word string
	}{{t.Ran, "ran"}, {t.WouldRun, "would run"}, {t.Done, "already done"}, {t.Checked, "checked"}, {t.Failed, "failed"}} {
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

// tasks lists the tasks of the running steps, longest first.
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

// FormatDuration formats a duration with a precision that depends on its length.
func FormatDuration(d time.Duration) string {
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
