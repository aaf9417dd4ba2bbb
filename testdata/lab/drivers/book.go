package drivers

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The ways that requests take.
const (
	Writes   = "writes"             // all of them
	Kept     = "writes, kept conn." // the half over an HTTP/2 connection that is kept
	New      = "writes, new conn."  // the half with a connection each
	NodePort = "NodePort"           // from outside, at nodes in turn; a connection each
	Service  = "Service"            // at the cluster IP, from within; a connection each
)

// ways lists them in the order of the report.
func ways() []string { return []string{Writes, Kept, New, NodePort, Service} }

// book collects what is measured, by phase. Each time is given, so that it is the time
// of the event and not that of writing it down.
type book struct {
	mu     sync.Mutex
	phases []*Phase
	last   map[string]time.Time // success, of each way
}

func newBook(at time.Time) *book {
	b := &book{last: map[string]time.Time{}}
	b.mark(Baseline, at)
	b.begin(at)
	return b
}

// begin has the baseline begin, where setting up took a while.
func (b *book) begin(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.phases[0].Began = at
	for _, way := range ways() {
		b.last[way] = at
	}
}

// mark ends a phase and begins the next. A name that was there gets a number.
func (b *book) mark(name string, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := &Phase{Name: name, Began: at, Ways: map[string]*Count{}}
	for n := 2; slices.ContainsFunc(b.phases, func(q *Phase) bool { return q.Name == p.Name }); n++ {
		p.Name = name + " " + strconv.Itoa(n)
	}
	for _, way := range ways() {
		p.Ways[way] = &Count{Errors: map[string]int{}}
	}
	b.phases = append(b.phases, p)
}

// at gives the phase of a time. The caller has the lock.
func (b *book) at(when time.Time) *Phase {
	for _, p := range slices.Backward(b.phases) {
		if !p.Began.After(when) {
			return p
		}
	}
	return b.phases[0]
}

// note changes the phase of a time.
func (b *book) note(when time.Time, change func(*Phase)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(b.at(when))
}

// ended counts a request when it has its answer, or none.
func (b *book) ended(when time.Time, err error, in ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, way := range in {
		n := b.at(when).Ways[way]
		n.Requests++
		if err != nil {
			n.Failed++
			n.Errors[reason(err)]++
			continue
		}
		b.gap(way, when)
	}
}

// gap counts the time since a way's last success.
func (b *book) gap(way string, when time.Time) {
	if !when.After(b.last[way]) {
		return
	}
	b.over(b.last[way], when, func(p *Phase, took time.Duration) { p.Ways[way].Gap = max(p.Ways[way].Gap, took) })
	b.last[way] = when
}

// over tells each phase that a time span touches how long the span had become by that
// phase's end. So one that an event causes is whole in the event's phase, even where it
// ends in a later one, and what goes before the event does not get it.
func (b *book) over(from, to time.Time, tell func(*Phase, time.Duration)) {
	for i, p := range b.phases {
		end := to
		if i+1 < len(b.phases) && b.phases[i+1].Began.Before(to) {
			end = b.phases[i+1].Began
		}
		if end.After(from) && p.Began.Before(to) {
			tell(p, end.Sub(from))
		}
	}
}

// span is over for who lacks the lock.
func (b *book) span(from, to time.Time, tell func(*Phase, time.Duration)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over(from, to, tell)
}

// close ends the last phase: what had no success since counts as a gap until then.
func (b *book) close(when time.Time) []*Phase {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, way := range ways() {
		b.gap(way, when)
	}
	for i, p := range b.phases {
		if i > 0 {
			b.phases[i-1].Took = p.Began.Sub(b.phases[i-1].Began)
		}
		p.Took = when.Sub(p.Began)
	}
	return b.phases
}

// reason names an error by its kind, so that a thousand of them are one line.
func reason(err error) string {
	var at *unreached
	var status *refused
	var network net.Error
	switch {
	case errors.As(err, &at):
		return at.target + " " + reason(at.err)
	case errors.As(err, &status):
		return strconv.Itoa(status.Code) + " " + status.Reason
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET):
		return "connection reset"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "unreachable"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "timeout"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection closed"
	}
	text := err.Error()
	if at := strings.LastIndex(text, ": "); at >= 0 {
		text = text[at+2:]
	}
	return text
}
