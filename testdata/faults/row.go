package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log" //nolint:depguard // net/http wants one for what it complains of
	"os"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"
)

// row is one fault with what has to come of it.
type row struct {
	group  string // what is hit: upstream, registry, push, disk, install, clock, ...
	fault  string
	expect string // for people: "the same bytes", "exit 4, two digests"
	quick  bool   // runs in the test too
	waits  bool   // spends its time waiting: many of them run at once
	run    func(ctx context.Context, l *lab) (came string, err error)
}

func (r row) name() string { return r.group + "/" + r.fault }

// result is what came of a row, as a line of the progress file has it.
type result struct {
	Of     string  `json:"of"` // which programs it was found with
	Row    string  `json:"row"`
	Expect string  `json:"expect"`
	Came   string  `json:"came"`
	OK     bool    `json:"ok"`
	Took   float64 `json:"seconds"`
}

// errSkipped is a row that cannot be tried here.
var errSkipped = errors.New("not tried")

// notes is the progress file.
type notes struct {
	mu   sync.Mutex
	path string
	of   string
	done map[string]result
}

// openNotes reads what is there of the same programs. A row that failed is
// tried again.
func openNotes(path, of string) (*notes, error) {
	n := &notes{path: path, of: of, done: map[string]result{}}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		var r result
		if json.Unmarshal([]byte(line), &r) == nil && r.Of == of && r.OK { // a line cut short is as good as none
			n.done[r.Row] = r
		}
	}
	if len(n.done) == 0 {
		err = os.WriteFile(path, nil, 0o600)
		return n, err
	}
	return n, nil
}

// add notes one result.
func (n *notes) add(r result) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	r.Of = n.of
	n.done[r.Row] = r
	if n.path == "" {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(n.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	// It begins a line of its own, whatever a run that was killed left of one.
	_, err = f.Write(append(append([]byte{'\n'}, line...), '\n'))
	return errors.Join(err, f.Close())
}

func (n *notes) find(name string) (result, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r, ok := n.done[name]
	return r, ok
}

// walk tries each row that has no result yet: first those that wait, many at
// once, then the others in turn. It says on log what it is at.
func (n *notes) walk(ctx context.Context, l *lab, rows []row, log io.Writer) error {
	g, waiting := errgroup.WithContext(ctx)
	g.SetLimit(12)
	for _, r := range rows {
		if _, done := n.find(r.name()); r.waits && !done {
			g.Go(func() error { return n.try(waiting, l, r, log) })
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, r := range rows {
		if _, done := n.find(r.name()); done {
			continue
		}
		if err := n.try(ctx, l, r, log); err != nil {
			return err
		}
	}
	return nil
}

func (n *notes) try(ctx context.Context, l *lab, r row, log io.Writer) error {
	begin := time.Now()
	came, err := r.run(ctx, l)
	if ctx.Err() != nil {
		return ctx.Err() // what an interrupt made of it is no result
	}
	skipped := errors.Is(err, errSkipped)
	if err != nil {
		came = strings.TrimPrefix(came+"; "+err.Error(), "; ")
	}
	out := result{Row: r.name(), Expect: r.expect, Came: came, OK: err == nil || skipped, Took: time.Since(begin).Seconds()}
	mark := "ok"
	switch {
	case skipped:
		mark = "skipped"
	case !out.OK:
		mark = "FAILED"
	}
	n.mu.Lock() // rows that wait run at once, and the log is one
	fmt.Fprintf(log, "%-7s %5.1fs  %s: %s\n", mark, out.Took, out.Row, out.Came)
	n.mu.Unlock()
	if skipped {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.done[out.Row] = out // and not in the file: it may be possible next time
		return nil
	}
	return n.add(out)
}

// table prints every row with its result and gives how many failed.
func (n *notes) table(w io.Writer, rows []row) (failed int) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FAULT\tEXPECTED\tCAME")
	for _, r := range rows {
		got, ok := n.find(r.name())
		came := got.Came
		if !ok || !got.OK {
			failed++
			came = "FAILED: " + came
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", r.name(), r.expect, clip(came, 160))
	}
	_ = t.Flush() // a terminal that is gone reads no table
	fmt.Fprintf(w, "%d of %d rows as expected\n", len(rows)-failed, len(rows))
	return failed
}

// clip cuts s where it is longer than a line can show.
func clip(s string, most int) string {
	if r := []rune(strings.Join(strings.Fields(s), " ")); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return strings.Join(strings.Fields(s), " ")
}

// silent is where net/http complains of the clients that leave.
func silent() *log.Logger { return log.New(io.Discard, "", 0) }
