package drivers

import (
	"errors"
	"fmt"
	"time"
)

// Limit is the most that clients may notice of an event. Lost writes and missed events
// are never allowed.
type Limit struct {
	Gap       time.Duration // without an acknowledged write, or an answer of the Service by either way
	Watch     time.Duration // until an event arrives, and until a broken watch is back
	Failed    int           // requests of all ways; Unlimited for any number
	NewFailed int           // those of them over a new connection; Unlimited for any number
	NewGap    time.Duration // without an acknowledged write over a new connection; 0 is no limit
}

// Unlimited is a number of failed requests that is no limit.
const Unlimited = -1

// patience is how many times the baseline's time is allowed on a busy machine.
const patience = 3

// Check holds a phase against a limit. Times are allowed to be three times those of the
// baseline of the same run, because everything is slower on a busy machine, and one request in
// a hundred may fail. Where the machine had fewer processes to run than it has cores, the limit
// alone counts.
func (r *Report) Check(phase string, l Limit) error {
	p, err := r.Phase(phase)
	if err != nil {
		return err
	}
	base, err := r.Phase(Baseline)
	if err != nil {
		return err
	}
	if l.Gap <= 0 || l.Watch <= 0 {
		return fmt.Errorf("phase %s: the limit names no time for gaps or for the watch: %+v", phase, l)
	}
	c := check{strict: p.Load < float64(r.Cores) && base.Load < float64(r.Cores), phase: p, cores: r.Cores}
	if !r.Read {
		c.add("%d acknowledged writes were not read back", r.Acked)
	}
	failed, onNew := 0, p.Ways[New].Failed
	for _, way := range []string{Writes, NodePort, Service} {
		n := p.Ways[way]
		if n.Requests == 0 || base.Ways[way].Requests == base.Ways[way].Failed {
			c.add("%s: %d requests, %d of %d failed in the baseline: nothing was measured", way, n.Requests, base.Ways[way].Failed, base.Ways[way].Requests)
		}
		c.time(way+": longest gap", n.Gap, l.Gap, base.Ways[way].Gap)
		if failed += n.Failed; way != Writes {
			onNew += n.Failed
		}
	}
	if base.Watch.Events == 0 {
		c.add("watch: no events in the baseline: nothing was measured")
	}
	if l.NewGap > 0 {
		c.time(New+": longest gap", p.Ways[New].Gap, l.NewGap, base.Ways[New].Gap)
	}
	c.time("watch: latest event", p.Watch.Silence, l.Watch, base.Watch.Silence)
	c.time("watch: back after a break", p.Watch.Back, l.Watch, base.Watch.Silence)
	c.number("lost writes", p.Lost, 0)
	c.number("watch: missed events", p.Watch.Missed, 0)
	c.number("failed requests", failed, c.failures(l.Failed, p.Ways[Writes].Requests))
	c.number("failed requests on new connections", onNew, c.failures(l.NewFailed, p.Ways[New].Requests))
	return errors.Join(c.found...)
}

// check collects what is wrong with a phase.
type check struct {
	phase  *Phase
	strict bool
	cores  int
	found  []error
}

func (c *check) add(format string, args ...any) {
	c.found = append(c.found, fmt.Errorf("phase %s: %w", c.phase.Name, fmt.Errorf(format, args...)))
}

func (c *check) number(what string, is, most int) {
	if most != Unlimited && is > most {
		c.add("%s: %d, %d at most", what, is, most)
	}
}

// failures returns how many of some requests may fail. On a busy machine a connection waits
// longer in the queue of a server that ends, so one in a hundred may fail.
func (c *check) failures(most, requests int) int {
	if c.strict || most == Unlimited {
		return most
	}
	return max(most, (requests+99)/100)
}

func (c *check) time(what string, is, limit, base time.Duration) {
	allowed := limit
	if !c.strict {
		allowed = max(limit, patience*base)
	}
	if is > allowed {
		c.add("%s: %s, %s at most (limit %s, baseline %s, load %.1f of %d cores)", what, seconds(is), seconds(allowed), seconds(limit), seconds(base), c.phase.Load, c.cores)
	}
}
