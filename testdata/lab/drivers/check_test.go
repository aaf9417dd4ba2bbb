package drivers

import (
	"strings"
	"testing"
	"time"
)

// measured is a report of a baseline and an event that nobody noticed.
func measured() *Report {
	phase := func(name string) *Phase {
		p := &Phase{Name: name, Took: 20 * time.Second, Load: 1, Ways: map[string]*Count{}, Watch: Watch{Events: 200, Silence: 50 * time.Millisecond}}
		for _, way := range ways() {
			p.Ways[way] = &Count{Requests: 200, Gap: 200 * time.Millisecond, Errors: map[string]int{}}
		}
		return p
	}
	return &Report{Phases: []*Phase{phase(Baseline), phase("event")}, Acked: 400, Read: true, Cores: 2}
}

func TestCheck(t *testing.T) {
	limit := Limit{Gap: 250 * time.Millisecond, Watch: time.Second}
	event := func(change func(*Phase)) func(*Report) { return func(r *Report) { change(r.Phases[1]) } }
	gap := func(way string, took time.Duration) func(*Report) {
		return event(func(p *Phase) { p.Ways[way].Gap = took })
	}
	busy := func(changes ...func(*Report)) func(*Report) {
		return func(r *Report) {
			r.Phases[1].Load = 2
			for _, change := range changes {
				change(r)
			}
		}
	}
	failed := func(way string) func(*Report) { return event(func(p *Phase) { p.Ways[way].Failed = 1 }) }
	for _, c := range []struct {
		name   string
		change func(*Report)
		limit  Limit
		want   string // of the error; "" is none
	}{
		{"quiet", func(*Report) {}, limit, ""},
		{"at the limit", gap(Writes, 250*time.Millisecond), limit, ""},
		{"a gap", gap(Writes, 251*time.Millisecond), limit, "writes: longest gap: 0.25 s, 0.25 s at most"},
		{"a gap of new connections alone is in another figure", gap(New, time.Minute), limit, ""},
		{"a gap of new connections", gap(New, 2*time.Second), Limit{Gap: time.Second, Watch: time.Second, NewGap: time.Second}, "writes, new conn.: longest gap: 2.00 s, 1.00 s at most"},
		{"a gap of new connections on a busy machine", busy(gap(New, 600*time.Millisecond)), Limit{Gap: time.Second, Watch: time.Second, NewGap: 500 * time.Millisecond}, ""},
		{"a gap of NodePort", gap(NodePort, time.Second), limit, "NodePort: longest gap"},
		{"a gap of the Service", gap(Service, time.Second), limit, "Service: longest gap"},
		{"a gap on a busy machine", busy(gap(Writes, 600*time.Millisecond)), limit, ""},
		{"a gap where the baseline was busy", func(r *Report) { r.Phases[0].Load = 9; gap(Writes, 600*time.Millisecond)(r) }, limit, ""},
		{"more than three times the baseline", busy(gap(Writes, 601*time.Millisecond)), limit, "0.60 s at most"},
		{"the limit is above three times the baseline", busy(gap(Writes, 900*time.Millisecond)), Limit{Gap: time.Second, Watch: time.Second}, ""},
		{"a late event", event(func(p *Phase) { p.Watch.Silence = 2 * time.Second }), limit, "latest event: 2.00 s"},
		{"a watch that stays away", event(func(p *Phase) { p.Watch.Back = 2 * time.Second }), limit, "back after a break: 2.00 s"},
		{"missed events", event(func(p *Phase) { p.Watch.Missed = 1 }), limit, "missed events: 1"},
		{"a lost write", event(func(p *Phase) { p.Lost = 1 }), Limit{Gap: time.Hour, Watch: time.Hour, Failed: Unlimited, NewFailed: Unlimited}, "lost writes: 1, 0 at most"},
		{"not read back", func(r *Report) { r.Read = false }, limit, "400 acknowledged writes were not read back"},
		{"a failed write", failed(Writes), limit, "failed requests: 1, 0 at most"},
		{"a failed write that may", failed(Writes), Limit{Gap: time.Second, Watch: time.Second, Failed: 1}, ""},
		{"a failed probe", failed(NodePort), Limit{Gap: time.Second, Watch: time.Second, Failed: Unlimited}, "on new connections: 1"},
		{"a failed write on a new connection", failed(New), limit, "on new connections: 1"},
		{"any number", failed(Service), Limit{Gap: time.Second, Watch: time.Second, Failed: Unlimited, NewFailed: Unlimited}, ""},
		{"no requests", event(func(p *Phase) { p.Ways[Service].Requests = 0 }), limit, "Service: 0 requests"},
		{"a baseline without a success", func(r *Report) { r.Phases[0].Ways[Writes].Failed = 200 }, limit, "200 of 200 failed in the baseline"},
		{"a baseline without events", func(r *Report) { r.Phases[0].Watch.Events = 0 }, limit, "no events in the baseline"},
		{"no limit", func(*Report) {}, Limit{}, "names no time"},
		{"another phase", func(r *Report) { r.Phases[1].Name = "x" }, limit, `no phase "event"`},
	} {
		r := measured()
		c.change(r)
		err := r.Check("event", c.limit)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %q", c.name, err, c.want)
		}
	}
}

func TestReport(t *testing.T) {
	r := measured()
	r.Phases[1].Lost = 3
	r.Phases[1].Ways[NodePort].Errors = map[string]int{"timeout": 2, "refused": 7}
	text := r.String()
	for _, want := range []string{"3 of 400 acknowledged writes are lost", "event: 20.00 s, load 1.0 of 2 cores", "NodePort: 7 refused, 2 timeout", "lost writes: 3"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	r.Read = false
	if text := r.String(); !strings.Contains(text, "NOT read back") || strings.Contains(text, "are lost") {
		t.Errorf("of what was not read back:\n%s", text)
	}
}
