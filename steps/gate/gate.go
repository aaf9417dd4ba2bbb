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
	// pollInterval is the time between two checks.
	pollInterval = 2 * time.Second
	// reportInterval is the minimum time between two progress messages.
	reportInterval = 15 * time.Second
	// defaultTimeout is how long a gate waits unless it specifies another timeout.
	defaultTimeout = 5 * time.Minute
)

// wait is a gate: its condition and timeout.
type wait struct {
	name string
	// check returns all that is missing; nothing means that the condition is met. An error
	// means that the state is unknown; it may pass.
	check func(context.Context, *steps.Host) ([]string, error)
	// hold is how long the condition must be met without a break; 0 is a single check.
	hold    time.Duration
	timeout time.Duration // 0 is defaultTimeout
	advice  string        // may have a verb for the name of the host
}

// step returns the gate as a step that changes nothing. A dry run checks once.
func (w wait) step() steps.Step {
	if w.timeout == 0 {
		w.timeout = defaultTimeout
	}
	return &op.Do{
		M:    steps.Meta{Name: w.name, ReadOnly: true, Timeout: w.timeout + 3*w.hold + time.Minute},
		Done: w.holds,
		Act:  w.until,
	}
}

// holds reports whether the condition is met for the duration hold, which is 0 in a dry run.
// It returns false at the first check that finds something missing.
func (w wait) holds(ctx context.Context, h *steps.Host) (bool, error) {
	for begin := time.Now(); ; {
		missing, err := w.check(ctx, h)
		if err != nil || len(missing) > 0 {
			return false, err
		}
		left := w.hold - time.Since(begin)
		if left <= 0 || h.DryRun {
			return true, nil
		}
		if err := sleep(ctx, min(pollInterval, left)); err != nil {
			return false, err
		}
	}
}

// until polls until the condition is met, or the timeout has passed. The error lists what is
// still missing.
func (w wait) until(ctx context.Context, h *steps.Host) error {
	ctx, cancel := context.WithTimeoutCause(ctx, w.timeout+w.hold, fmt.Errorf("waited for %s", w.timeout))
	defer cancel()
	var last error               // the result of the last check before the timeout
	var good, reported time.Time // since when nothing is missing; time of the last report
	for message := ""; ; {
		missing, err := w.check(ctx, h)
		now := time.Now()
		switch {
		case err != nil:
			good = time.Time{}
			if ctx.Err() == nil || last == nil {
				last = err
			}
		case len(missing) > 0:
			good, last = time.Time{}, w.lacks(h, missing)
			if what := strings.Join(missing, "; "); what != message && now.Sub(reported) >= reportInterval {
				h.ReportWait(what)
				message, reported = what, now
			}
		case good.IsZero():
			good = now
		}
		if !good.IsZero() && now.Sub(good) >= w.hold {
			return nil
		}
		if err := sleep(ctx, pollInterval); err != nil {
			if last == nil { // the timeout passed while nothing was missing
				return err
			}
			return last
		}
	}
}

// lacks returns the error of a gate whose timeout has passed.
func (w wait) lacks(h *steps.Host, missing []string) error {
	err := errors.New(strings.Join(missing, "; "))
	if strings.Contains(w.advice, "%s") {
		return steps.Advise(err, w.advice, h.Name)
	}
	return steps.Advise(err, "%s", w.advice)
}

// sleep waits for d, or until the context ends.
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
