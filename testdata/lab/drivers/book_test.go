package drivers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"
)

// TestGaps: a gap is in every phase that it touches, as long as it was by that phase's
// end; the phase before an event does not get what the event causes.
func TestGaps(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	for _, c := range []struct {
		name      string
		successes []float64 // seconds; phases begin at 0, 10 and 20, and all ends at 30
		want      [3]float64
	}{
		{"none", nil, [3]float64{10, 20, 30}},
		{"regular", []float64{2, 4, 6, 8, 9.5, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29}, [3]float64{2, 2, 2}},
		{"from an event on", []float64{9, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29}, [3]float64{9, 6, 1}},
		{"over two marks", []float64{3, 6, 9, 25, 28}, [3]float64{3, 11, 16}},
		{"until the end", []float64{5, 9, 15, 19}, [3]float64{5, 6, 11}},
		{"out of order", []float64{5, 4, 9.9, 9.8, 15, 20, 25}, [3]float64{5, 5.1, 5}},
	} {
		b := newBook(start)
		b.mark("event", at(10))
		b.mark("after", at(20))
		for _, s := range c.successes {
			b.ended(at(s), nil, Writes)
		}
		for i, p := range b.close(at(30)) {
			if got := p.Ways[Writes].Gap.Seconds(); got < c.want[i]-0.001 || got > c.want[i]+0.001 || p.Took != 10*time.Second {
				t.Errorf("%s: %s of %s has a gap of %v s, want %v", c.name, p.Name, p.Took, got, c.want[i])
			}
		}
	}
}

// TestCounts: a request counts where it ends, and a failure is no success.
func TestCounts(t *testing.T) {
	start := time.Unix(1000, 0)
	b := newBook(start)
	b.mark("event", start.Add(10*time.Second))
	b.mark("event", start.Add(20*time.Second))
	b.ended(start.Add(5*time.Second), nil, Writes, Kept)
	b.ended(start.Add(10*time.Second), io.EOF, Writes, New)
	b.ended(start.Add(11*time.Second), io.EOF, Writes, New)
	b.ended(start.Add(25*time.Second), nil, Writes, New)
	p := b.close(start.Add(30 * time.Second))
	if p[1].Name != "event" || p[2].Name != "event 2" {
		t.Errorf("phases %s and %s", p[1].Name, p[2].Name)
	}
	for i, want := range []Count{{Requests: 1}, {Requests: 2, Failed: 2}, {Requests: 1}} {
		if n := p[i].Ways[Writes]; n.Requests != want.Requests || n.Failed != want.Failed || n.Errors["connection closed"] != want.Failed {
			t.Errorf("%s: %+v", p[i].Name, n)
		}
	}
	if p[0].Ways[New].Requests != 0 || p[1].Ways[New].Failed != 2 || p[2].Ways[Writes].Gap != 20*time.Second {
		t.Errorf("%+v %+v %+v", p[0].Ways[New], p[1].Ways[New], p[2].Ways[Writes])
	}
}

func TestReasons(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&refused{Code: 503, Reason: "ServiceUnavailable"}, "503 ServiceUnavailable"},
		{&unreached{target: "10.0.0.1:80", err: fmt.Errorf("dial: %w", syscall.ECONNREFUSED)}, "10.0.0.1:80 connection refused"},
		{fmt.Errorf("Get: %w", context.DeadlineExceeded), "timeout"},
		{errors.Join(syscall.ECONNREFUSED, context.DeadlineExceeded), "connection refused"},
		{fmt.Errorf("read: %w", syscall.ECONNRESET), "connection reset"},
		{fmt.Errorf("dial: %w", syscall.EHOSTUNREACH), "unreachable"},
		{errors.New(`Patch "https://x/y": http2: client connection lost`), "client connection lost"},
	} {
		if got := reason(c.err); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}
