package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// What hosts wait for grows with their number, not with its square.
func TestManyHostsWaitForMany(t *testing.T) {
	const many, chain = 500, 6
	var names []string
	for i := range many {
		names = append(names, fmt.Sprint("h", i))
	}
	all := hosts(names...)
	g := graph(t, func() plan.Fragment {
		var fs []plan.Fragment
		for i := range chain {
			fs = append(fs, plan.On(all, s(fmt.Sprint("a", i)), s(fmt.Sprint("b", i))))
		}
		return plan.Seq(fs...)
	})
	r := &run{Engine: &Engine{Host: func(h manifest.Host) *steps.Host { return &steps.Host{Host: h, Log: slog.New(slog.DiscardHandler)} }}, graph: g}
	links := 0
	for _, u := range r.units() {
		links += len(u.lane) + len(u.all)
	}
	if units := many * chain * 2; links > units {
		t.Errorf("%d steps on hosts wait for %d others", units, links)
	}
}

// A step that waits for all hosts begins when the last one is done, and not at
// all when one of them is not.
func TestBarrier(t *testing.T) {
	for _, fails := range []string{"", "y"} {
		before, after := s("before"), s("after")
		ended := make(chan string, 3)
		before.run = func(_ context.Context, h *steps.Host) error {
			if h.Name == fails {
				return errors.New("broken")
			}
			ended <- h.Name
			return nil
		}
		seen := 0
		after.run = func(context.Context, *steps.Host) error { seen = len(ended); return nil }
		e, r := engine(t)
		err := e.Run(t.Context(), graph(t, func() plan.Fragment {
			return plan.Seq(plan.On(hosts("x", "y", "z"), before), plan.On(hosts("q"), after))
		}))
		began := slices.ContainsFunc(r.events, func(e string) bool { return e == "after@q ran" })
		if fails == "" && (err != nil || seen != 3 || !began) || fails != "" && (err == nil || began) {
			t.Errorf("%q fails: %v, %d had ended, %v", fails, err, seen, r.events)
		}
	}
}

// A check that waits for what was never begun does not look: there is nothing yet
// to look at.
func TestNothingLooksBehindWhatWasNotBegun(t *testing.T) {
	finder, change, later := s("finder"), s("change"), s("later")
	for _, c := range []*step{finder, later} {
		c.m.ReadOnly, c.m.Always = true, true
	}
	finder.run = func(_ context.Context, h *steps.Host) error { return steps.Findings{{Host: h.Name, What: "bad"}} }
	e, r := engine(t)
	err := e.Run(t.Context(), graph(t, func() plan.Fragment {
		return plan.Seq(plan.On(hosts("x"), finder), plan.On(hosts("y"), change), plan.On(hosts("z"), later))
	}))
	if err == nil || !slices.Equal(r.events, []string{"finder@x failed"}) {
		t.Errorf("%v, %v", err, r.events)
	}
}
