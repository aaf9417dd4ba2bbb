package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"
)

// microTime is the form of a Lease's times.
const microTime = "2006-01-02T15:04:05.000000Z07:00"

// elector takes a Lease and renews it, by the rules of k8s.io/client-go/tools/leaderelection.
type elector struct {
	lease                     lease
	identity                  string
	duration, deadline, retry time.Duration

	seen   leaseSpec // what was read last
	seenAt time.Time // when it changed, by this machine's clock
	last   object
}

var errLost = errors.New("lost leadership, restarting kube-vip")

// run takes the Lease, calls lead while it is held, and releases it when ctx ends. The error is
// errLost if it could not be renewed in time.
func (e *elector) run(ctx context.Context, lead func(context.Context)) error {
	for !e.attempt(ctx) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(e.retry + time.Duration(rand.Float64()*jitter*float64(e.retry))): //nolint:gosec // no secret
		}
	}
	report("became the leader", "identity", e.identity)
	leading, stop := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		lead(leading)
	}()
	err := e.renew(ctx)
	stop()
	if err == nil {
		e.release(ctx)
	}
	<-over
	return err
}

// renew returns nil when ctx ends.
func (e *elector) renew(ctx context.Context) error {
	for {
		renewed := false
		until, cancel := context.WithTimeout(ctx, e.deadline)
		for !renewed && until.Err() == nil {
			if renewed = e.attempt(until); !renewed {
				select {
				case <-until.Done():
				case <-time.After(e.retry):
				}
			}
		}
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		if !renewed {
			return errLost
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(e.retry):
		}
	}
}

// attempt takes or renews the Lease once, and reports whether it is held then.
func (e *elector) attempt(ctx context.Context) bool {
	now := time.Now()
	want := leaseSpec{Holder: e.identity, Seconds: int(e.duration / time.Second), Acquired: now.UTC().Format(microTime), Renewed: now.UTC().Format(microTime)}
	o, err := e.lease.get(ctx)
	if isCode(err, http.StatusNotFound) {
		if o, err = e.lease.create(ctx, want); err != nil {
			return e.failed(ctx, "error initially creating lease lock", err)
		}
		e.observe(o, now)
		return true
	}
	if err != nil {
		return e.failed(ctx, "error retrieving lease lock", err)
	}
	e.observe(o, now)
	if e.seen.Holder != "" && e.seen.Holder != e.identity && e.seenAt.Add(time.Duration(e.seen.Seconds)*time.Second).After(now) {
		return false // somebody else holds it
	}
	want.Transitions = e.seen.Transitions
	if e.seen.Holder == e.identity {
		want.Acquired = e.seen.Acquired
	} else {
		want.Transitions++
	}
	o.Spec = want
	if o, err = e.lease.update(ctx, o); err != nil {
		return e.failed(ctx, "failed to update lock", err)
	}
	e.observe(o, now)
	return true
}

// observe notes when the Lease changed: clocks of other machines are not relied on.
func (e *elector) observe(o object, now time.Time) {
	if o.Spec != e.seen || e.seenAt.IsZero() {
		if o.Spec.Holder != e.seen.Holder && o.Spec.Holder != "" {
			report("New leader", "leader", o.Spec.Holder)
		}
		e.seen, e.seenAt = o.Spec, now
	}
	e.last = o
}

func (e *elector) failed(ctx context.Context, what string, err error) bool {
	if ctx.Err() == nil {
		report(what, "lock", e.lease.name, "err", err)
	}
	return false
}

// release gives the Lease up, so that another member takes it at its next try.
func (e *elector) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.deadline)
	defer cancel()
	now := time.Now().UTC().Format(microTime)
	o := e.last
	o.Spec = leaseSpec{Seconds: 1, Acquired: now, Renewed: now, Transitions: e.seen.Transitions}
	if _, err := e.lease.update(ctx, o); err != nil {
		report("failed to release lock", "lock", e.lease.name, "err", err)
	}
}
