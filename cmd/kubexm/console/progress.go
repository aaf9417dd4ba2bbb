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

// plainEvery is how often long work says where it is when nobody watches a
// terminal: often enough for a log, seldom enough to read one.
const plainEvery = 5 * time.Second

// Progress shows long work on standard error: a live bar with rate, time left
// and current items on a terminal, a line every few seconds elsewhere.
type Progress struct {
	out   io.Writer
	quiet bool
	live  bool
	json  bool // lines for programs

	mu       sync.Mutex
	name     string // of the phase
	start    time.Time
	done     int64  // bytes
	expected int64  // bytes; 0 is unknown
	then     string // what goes on once all of them are done; empty: nothing
	waited   int    // lines due since then
	current  map[int]string
	next     int

	bars *mpb.Progress
	bar  *mpb.Bar
	tick chan struct{} // closed to end the plain lines
}

// Shown says how progress is shown.
type Shown struct {
	Display
	Quiet bool // nothing is shown, unless --progress says how
	Live  bool // a bar that moves
}

// NewProgress shows progress on out.
func NewProgress(out io.Writer, how Shown) *Progress {
	mode := how.Progress
	return &Progress{
		out: out, quiet: how.Quiet && (mode == Auto || mode == "") || mode == None, live: how.Live, json: mode == JSON, current: map[int]string{},
	}
}

// Phase begins a new piece of work whose size is not known yet.
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

// Total tells what a build will do, once that is known.
func (p *Progress) Total(plan bundle.Plan) {
	p.mu.Lock()
	p.done, p.then, p.waited = 0, "packing", 0
	p.mu.Unlock()
	p.Expect(plan.Download)
	var space []string
	for _, s := range plan.Space {
		space = append(space, fmt.Sprintf("up to %s on the file system of %s, %s free there", bundle.Bytes(s.Need), strings.Join(s.Dirs, " and "), bundle.Bytes(s.Free)))
	}
	p.say(fmt.Sprintf("build: %d blobs, %s, of which %s are cached; to download %s; %s", plan.Blobs, bundle.Bytes(plan.Bytes),
		bundle.Bytes(plan.Cached), bundle.Bytes(plan.Download), strings.Join(space, "; ")))
}

// Expect sets how many bytes the phase will take.
func (p *Progress) Expect(n int64) {
	p.mu.Lock()
	p.expected = n
	bar := p.bar
	p.mu.Unlock()
	if bar != nil { // without the lock: drawing the bar takes it too
		bar.SetTotal(n, false)
	}
}

// Add counts n bytes; it may be negative when a download starts anew.
func (p *Progress) Add(n int64) {
	p.mu.Lock()
	p.done += n
	done, bar := p.done, p.bar
	p.mu.Unlock()
	if bar != nil {
		bar.SetCurrent(done)
	}
}

// say prints a line without breaking the bar.
func (p *Progress) say(line string) {
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

// Note prints what a person should know, also where no progress is shown.
func (p *Progress) Note(text string) {
	p.mu.Lock()
	bars := p.bars
	p.mu.Unlock()
	if bars != nil {
		_, _ = bars.Write([]byte("note: " + PlainText(text) + "\n")) // as in say
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

// items names what is under way, the oldest first.
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
	p.bars = mpb.New(mpb.WithOutput(Bare(p.out)), mpb.WithAutoRefresh(), mpb.WithWidth(40))
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

// after tells whether only what follows the bytes is left.
func (p *Progress) after() bool {
	return p.then != "" && p.done >= p.expected && len(p.current) == 0
}

// amount says how much is done, and of how much where that is known.
func (p *Progress) amount() string {
	if p.after() {
		return p.then
	}
	if p.expected == 0 {
		return bundle.Bytes(p.done)
	}
	return fmt.Sprintf("%s of %s (%d %%)", bundle.Bytes(p.done), bundle.Bytes(p.expected), p.done*100/p.expected)
}

// lines prints where the work is until done is closed.
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

// progressLine is where long work is, for programs.
type progressLine struct {
	Type  string   `json:"type"` // progress
	Phase string   `json:"phase"`
	Bytes int64    `json:"bytes"`           // done
	Of    int64    `json:"of,omitempty"`    // 0 is not known
	Items []string `json:"items,omitempty"` // under way, the oldest first
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

// waitEvery is which of the lines that are due is printed while no bytes come: the
// first, to say what goes on, and then enough to show that it does.
const waitEvery = 6

// line says where the work is, empty where that is nothing new.
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

// pace gives the rate since the phase began and, where the end is known, the
// time left at that rate.
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
