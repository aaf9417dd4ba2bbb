package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

const (
	// every is the time between two looks.
	every = 2 * time.Second
	// saying is the least time between two lines about what is waited for.
	saying = 15 * time.Second
	// patience is how long a gate waits where it says nothing else.
	patience = 5 * time.Minute
)

// wait is a gate: what it looks for, and for how long.
type wait struct {
	name string
	// look names all that is missing; nothing is missing where it gives none. An error is
	// of the way to the answer, and may mend itself.
	look func(context.Context, *steps.Host) ([]string, error)
	// hold is how long nothing may be missing, without a break; 0 is a single look.
	hold     time.Duration
	patience time.Duration // 0 is the package's
	advice   string        // what to look at; may have a verb for the name of the host
}

// step makes the gate a step that only looks. A dry run looks once, as every Precheck.
func (w wait) step() steps.Step {
	if w.patience == 0 {
		w.patience = patience
	}
	return &op.Do{
		M:    steps.Meta{Name: w.name, LooksOnly: true, Timeout: w.patience + 3*w.hold + time.Minute},
		Done: w.holds,
		Act:  w.until,
	}
}

// holds tells whether nothing is missing, for as long as the gate demands. It ends with
// the first look that finds something.
func (w wait) holds(ctx context.Context, h *steps.Host) (bool, error) {
	for begin := time.Now(); ; {
		missing, err := w.look(ctx, h)
		if err != nil || len(missing) > 0 {
			return false, err
		}
		left := w.hold - time.Since(begin)
		if left <= 0 {
			return true, nil
		}
		if err := sleep(ctx, min(every, left)); err != nil {
			return false, err
		}
	}
}

// until looks again and again, and ends with what is still missing.
func (w wait) until(ctx context.Context, h *steps.Host) error {
	ctx, cancel := context.WithTimeoutCause(ctx, w.patience+w.hold, fmt.Errorf("waited for %s", w.patience))
	defer cancel()
	var last error           // what was found while there was time to look
	var good, said time.Time // since when nothing is missing; when it was said what is
	for told := ""; ; {
		missing, err := w.look(ctx, h)
		now := time.Now()
		switch {
		case err != nil:
			good = time.Time{}
			if ctx.Err() == nil || last == nil {
				last = err
			}
		case len(missing) > 0:
			good, last = time.Time{}, w.lacks(h, missing)
			if what := strings.Join(missing, "; "); what != told && now.Sub(said) >= saying {
				h.WaitsFor(what)
				told, said = what, now
			}
		case good.IsZero():
			good = now
		}
		if !good.IsZero() && now.Sub(good) >= w.hold {
			return nil
		}
		if err := sleep(ctx, every); err != nil {
			if last == nil { // it ended while nothing was missing
				return err
			}
			return last
		}
	}
}

// lacks is the error of a gate that was waited for in vain.
func (w wait) lacks(h *steps.Host, missing []string) error {
	err := errors.New(strings.Join(missing, "; "))
	if strings.Contains(w.advice, "%s") {
		return steps.Advise(err, w.advice, h.Name)
	}
	return steps.Advise(err, "%s", w.advice)
}

// sleep waits, and ends early with the context.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
