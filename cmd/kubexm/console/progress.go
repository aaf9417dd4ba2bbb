package console

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/fetch"
)

// plainEvery is the interval of progress lines without a terminal.
const plainEvery = 5 * time.Second

// Progress shows the progress of long work on standard error: on a terminal a bar with
// rate, time left and current items, else a line every few seconds.
type Progress struct {
	out   io.Writer
	quiet bool
	live  bool
	json  bool // lines of JSON

	mu       sync.Mutex
	name     string // of the phase
	start    time.Time
	done     int64  // bytes
	expected int64  // bytes; 0 is unknown
	then     string // work that follows when all bytes are done; "" for none
	waited   int    // lines due since all bytes are done
	current  map[int]string
	next     int

	bars *mpb.Progress
	bar  *mpb.Bar
	tick chan struct{} // closed to end the plain lines
}

// ProgressOptions holds the options of Progress.
type ProgressOptions struct {
	Display
	Quiet bool // show nothing, unless --progress is given
	Live  bool // show a progress bar
}

// NewProgress shows progress on out.
func NewProgress(out io.Writer, how ProgressOptions) *Progress {
	mode := how.Progress
	return &Progress{
		out: out, quiet: how.Quiet && (mode == Auto || mode == "") || mode == None, live: how.Live, json: mode == JSON, current: map[int]string{},
	}
}

// Phase begins a new phase; its size is unknown until Expect is called.
func (p *Progress) Phase(name string) {
	p.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.name, p.start, p.done, p.expected, p.then, p.waited = name, time.Now(), 0, 0, "", 0
	switch {
	case p.quiet:
	case p.live:
		p.startBar()
	default:
		p.tick = make(chan struct{})
		go p.lines(p.tick)
	}
}

// Total prints what a build will download and needs, and sets the expected size.
func (p *Progress) Total(plan bundle.Plan) {
	p.mu.Lock()
	p.done, p.then, p.waited = 0, "packing", 0
	p.mu.Unlock()
	p.Expect(plan.Download)
	var space []string
	for _, s := range plan.Space {
		space = append(space, fmt.Sprintf("needs up to %s on the file system of %s, which has %s free", bundle.Bytes(s.Need), strings.Join(s.Dirs, " and "), bundle.Bytes(s.Free)))
	}
	p.printLine(fmt.Sprintf("build: %d blobs, %s, of which %s are cached; %s to download; %s", plan.Blobs, bundle.Bytes(plan.Bytes),
		bundle.Bytes(plan.Cached), bundle.Bytes(plan.Download), strings.Join(space, "; ")))
}

// Expect sets the size of the phase in bytes.
func (p *Progress) Expect(n int64) {
	p.mu.Lock()
	p.expected = n
	bar := p.bar
	p.mu.Unlock()
	if bar != nil { // after the unlock: drawing the bar also locks
		bar.SetTotal(n, false)
	}
}

// Add adds n bytes; n is negative when a download starts again.
func (p *Progress) Add(n int64) {
	p.mu.Lock()
	p.done += n
	done, bar := p.done, p.bar
	p.mu.Unlock()
	if bar != nil {
		bar.SetCurrent(done)
	}
}

// printLine prints a line without disturbing the bar.
func (p *Progress) printLine(line string) {
	p.mu.Lock()
	bars := p.bars
	p.mu.Unlock()
	switch {
	case p.quiet:
	case p.json:
		line, err := json.Marshal(map[string]string{"type": "plan", "message": line})
		if err == nil {
			fmt.Fprintf(p.out, "%s\n", line)
		}
	case bars != nil:
		_, _ = bars.Write([]byte(PlainText(line) + "\n")) // a lost line of progress is no failure
	default:
		fmt.Fprintln(p.out, line)
	}
}

// Note prints a note, even if no progress is shown.
func (p *Progress) Note(text string) {
	p.mu.Lock()
	bars := p.bars
	p.mu.Unlock()
	if bars != nil {
		_, _ = bars.Write([]byte("note: " + PlainText(text) + "\n")) // as in printLine
		return
	}
	fmt.Fprintln(p.out, "note: "+text)
}

// Stop ends the phase; it may be called twice.
func (p *Progress) Stop() {
	p.mu.Lock()
	bars, bar, tick := p.bars, p.bar, p.tick
	p.bars, p.bar, p.tick = nil, nil, nil
	p.mu.Unlock()
	if bar != nil {
		bar.Abort(true)
		bars.Wait()
	}
	if tick != nil {
		close(tick)
	}
}

// Start implements fetch.Progress.
func (p *Progress) Start(name string, _ int64) fetch.Transfer {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	p.current[p.next] = PlainText(name)
	return &download{p: p, id: p.next}
}

type download struct {
	p  *Progress
	id int
}

func (d *download) Add(n int64) { d.p.Add(n) }

func (d *download) Done(error) {
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	delete(d.p.current, d.id)
}

// items lists up to limit current items, oldest first.
func (p *Progress) items(limit int) string {
	ids := slices.Sorted(maps.Keys(p.current))
	var names []string
	for _, id := range ids[:min(limit, len(ids))] {
		names = append(names, p.current[id])
	}
	if len(ids) > limit {
		names = append(names, fmt.Sprintf("%d more", len(ids)-limit))
	}
	return strings.Join(names, ", ")
}

func (p *Progress) startBar() {
	p.bars = mpb.New(mpb.WithOutput(Underlying(p.out)), mpb.WithAutoRefresh(), mpb.WithWidth(40))
	p.bar = p.bars.AddBar(0,
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.name + ": " + p.amount() + " "
		})),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string {
			p.mu.Lock()
			defer p.mu.Unlock()
			return fmt.Sprintf(" %s  %s", p.pace(), p.items(2))
		})))
}

// after reports whether all bytes are done and only the following work is left.
func (p *Progress) after() bool {
	return p.then != "" && p.done >= p.expected && len(p.current) == 0
}

// amount returns the bytes done, and the expected bytes if they are known.
func (p *Progress) amount() string {
	if p.after() {
		return p.then
	}
	if p.expected == 0 {
		return bundle.Bytes(p.done)
	}
	return fmt.Sprintf("%s of %s (%d %%)", bundle.Bytes(p.done), bundle.Bytes(p.expected), p.done*100/p.expected)
}

// lines prints progress lines until done is closed.
func (p *Progress) lines(done <-chan struct{}) {
	t := time.NewTicker(plainEvery)
	defer t.Stop()
	for {
		select {
		case <-done:
			return
		case <-t.C:
		}
		if p.json {
			fmt.Fprintln(p.out, p.jsonLine())
		} else if line := p.line(); line != "" {
			fmt.Fprintln(p.out, line)
		}
	}
}

// progressLine is a progress line as JSON.
type progressLine struct {
	Type  string   `json:"type"` // progress
	Phase string   `json:"phase"`
	Bytes int64    `json:"bytes"`           // done
	Of    int64    `json:"of,omitempty"`    // expected; 0 is unknown
	Items []string `json:"items,omitempty"` // current items, oldest first
}

func (p *Progress) jsonLine() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := progressLine{Type: "progress", Phase: p.name, Bytes: p.done, Of: p.expected}
	for _, id := range slices.Sorted(maps.Keys(p.current)) {
		l.Items = append(l.Items, p.current[id])
	}
	text, err := json.Marshal(l)
	if err != nil {
		return "{}"
	}
	return string(text)
}

// waitEvery is the number of intervals per line after all bytes are done: the first line
// is printed, then every sixth.
const waitEvery = 6

// line returns the next progress line; "" if none is due.
func (p *Progress) line() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.after() {
		if p.waited++; p.waited%waitEvery != 1 {
			return ""
		}
		return fmt.Sprintf("%s: %s, %s so far", p.name, p.amount(), time.Since(p.start).Round(time.Second))
	}
	line := p.name + ": " + p.amount() + ", " + p.pace()
	if items := p.items(4); items != "" {
		line += "; now " + items
	}
	return line
}

// pace returns the average rate of the phase and, if the size is known, the remaining
// time at that rate.
func (p *Progress) pace() string {
	elapsed := time.Since(p.start).Seconds()
	if p.after() {
		return time.Since(p.start).Round(time.Second).String()
	}
	if elapsed < 0.5 || p.done <= 0 {
		return "…"
	}
	rate := float64(p.done) / elapsed
	s := bundle.Bytes(int64(rate)) + "/s"
	if left := p.expected - p.done; left > 0 {
		s += fmt.Sprintf(", %s left", time.Duration(float64(left)/rate*float64(time.Second)).Round(time.Second))
	}
	return s
}
