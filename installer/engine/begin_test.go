package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// TestBeginComesBeforeTheFirstChange: once, however many hosts change, and never where
// nothing changes a host.
func TestBeginComesBeforeTheFirstChange(t *testing.T) {
	changed := func(context.Context, *steps.Host) error { return nil }
	done := func(context.Context, *steps.Host) (steps.Verdict, error) { return steps.Done, nil }
	for name, c := range map[string]struct {
		step   *step
		dry    bool
		begins int
	}{
		"a change of two hosts":     {&step{m: steps.Meta{Name: "a"}, run: changed}, false, 1},
		"what is done already":      {&step{m: steps.Meta{Name: "a"}, precheck: done}, false, 0},
		"what only looks":           {&step{m: steps.Meta{Name: "a", ReadOnly: true}}, false, 0},
		"a change of this machine":  {&step{m: steps.Meta{Name: "a", WorkdirOnly: true}}, false, 0},
		"a dry run":                 {&step{m: steps.Meta{Name: "a"}}, true, 0},
		"a step without a precheck": {&step{m: steps.Meta{Name: "a", Always: true}}, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			begins, ran := 0, 0
			c.step.run = func(context.Context, *steps.Host) error {
				if ran++; begins != c.begins {
					t.Errorf("a step runs, and Begin was called %d times", begins)
				}
				return nil
			}
			e := &Engine{Host: func(h manifest.Host) *steps.Host { return &steps.Host{Host: h} }, DryRun: c.dry, Begin: func(context.Context) error { begins++; return nil }}
			if err := e.Run(t.Context(), graph(t, func() plan.Fragment { return plan.On(hosts("a", "b"), c.step) })); err != nil {
				t.Fatal(err)
			}
			if begins != c.begins {
				t.Errorf("Begin was called %d times, want %d", begins, c.begins)
			}
		})
	}
	// In a bubble, time stands still while a goroutine waits for a sync.Mutex or sync.Once.
	t.Run("that takes long", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &step{m: steps.Meta{Name: "a"}, run: changed}
			e := &Engine{Host: func(h manifest.Host) *steps.Host { return &steps.Host{Host: h} }, Commands: 2, Timeout: time.Minute, Begin: func(context.Context) error {
				time.Sleep(2 * time.Minute)
				return nil
			}}
			begin := time.Now()
			err := e.Run(t.Context(), graph(t, func() plan.Fragment { return plan.On(hosts("a", "b"), s) }))
			if took := time.Since(begin); took != 2*time.Minute || err == nil || !strings.Contains(err.Error(), "took longer than 1m") {
				t.Errorf("after %s: %v", took, err)
			}
		})
	})
	t.Run("that fails", func(t *testing.T) {
		no := errors.New("no luck")
		s := &step{m: steps.Meta{Name: "a"}, run: func(context.Context, *steps.Host) error { t.Error("it ran"); return nil }}
		e := &Engine{Host: func(h manifest.Host) *steps.Host { return &steps.Host{Host: h} }, Begin: func(context.Context) error { return no }}
		if err := e.Run(t.Context(), graph(t, func() plan.Fragment { return plan.On(hosts("a"), s) })); !errors.Is(err, no) || !strings.Contains(err.Error(), "a") {
			t.Errorf("%v", err)
		}
	})
}
