package installer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// BusyError says that another run works on hosts of the same cluster.
type BusyError struct {
	At     string // the folder here, or the host that says so
	Holder string // who, where, since when, for which cluster; "" where it did not say
	Other  bool   // it works on another cluster, which has the host as well
}

func (e *BusyError) Error() string {
	switch {
	case e.Holder == "":
		return fmt.Sprintf("another run works on this cluster: it has locked %s", e.At)
	case e.Other:
		return fmt.Sprintf("another run works on host %s: %s", e.At, e.Holder)
	}
	return fmt.Sprintf("another run works on this cluster, as %s says: %s", e.At, e.Holder)
}

// Advice says what to do.
func (e *BusyError) Advice() string {
	if e.Other {
		return "wait for the other run to end, and see why two configs have this host"
	}
	return "wait for the other run to end; two at once would undo each other's work"
}

// holder is this run in words: "process 712 of root on wd1 since 2026-…".
func holder(now time.Time) string {
	who, where := "somebody", "a machine without a name"
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		where = h
	}
	return fmt.Sprintf("process %d of %s on %s since %s", os.Getpid(), who, where, now.Format(time.RFC3339))
}

// leasePath is the same for all clusters: a host belongs to one of them.
const leasePath = "/run/kubexm/kubexm.run"

const forCluster = ", for cluster "

// lease is the claim of this run on a host.
func (s *Session) lease() runner.Lease {
	return runner.Lease{Path: leasePath, Holder: holder(time.Now()) + forCluster + s.Cluster.Metadata.Name}
}

// busy is why a lease is not to be had.
func (s *Session) busy(host string, err *runner.HeldError) *BusyError {
	_, cluster, found := strings.Cut(err.Holder, forCluster)
	return &BusyError{At: host, Holder: err.Holder, Other: found && cluster != s.Cluster.Metadata.Name}
}

// claimWait is how long leases are waited for that another run has: that run may be
// about to give them back, since it did not get all of its own.
const claimWait = 400 * time.Millisecond

// claim keeps other runs away from the hosts of a plan, on whatever machine and for
// whatever cluster they run. It holds a lease on each host, and gives a context that
// ends when somebody else has taken one of them. A host out of reach for a while, as
// while it reboots, does not end the run.
//
// All leases are asked for at once. Where one is taken all are given back, and are
// taken one after another, in an order that every run has: of two runs with hosts in
// common one gets all of them then.
func (s *Session) claim(ctx context.Context, g *plan.Graph) (context.Context, func(), error) {
	run, lost := context.WithCancelCause(ctx)
	c := &claims{Session: s, lease: s.lease(), run: run, lost: lost}
	end := func() {
		c.release()
		lost(nil)
	}
	hosts := s.claimed(g)
	err := c.takeAll(hosts)
	if busy := (*BusyError)(nil); errors.As(err, &busy) && run.Err() == nil {
		c.release()
		err = c.takeInTurn(hosts)
	}
	if err == nil {
		return run, end, nil
	}
	end()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return ctx, nil, err
}

// claimed are the hosts of a plan, each machine once, in the order of their machine
// ids: names and addresses may differ from one config to another.
func (s *Session) claimed(g *plan.Graph) []*steps.Host {
	var out []*steps.Host
	for _, named := range g.Hosts() {
		if h := s.hosts[named.Name]; h != nil {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b *steps.Host) int {
		return cmp.Or(cmp.Compare(a.Facts.MachineID, b.Facts.MachineID), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Name, b.Name))
	})
	return slices.CompactFunc(out, func(a, b *steps.Host) bool { // a host that is listed twice is for the checks to tell
		return a.Facts.MachineID != "" && a.Facts.MachineID == b.Facts.MachineID && a.Facts.BootID == b.Facts.BootID
	})
}

// claims are the leases that a run has taken.
type claims struct {
	*Session
	lease runner.Lease
	run   context.Context //nolint:containedctx // it lasts as long as the claims, which end it
	lost  context.CancelCauseFunc

	mu   sync.Mutex
	held []func()
}

// release gives all leases back, and waits until they are.
func (c *claims) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var wg sync.WaitGroup
	for _, give := range c.held {
		wg.Go(give)
	}
	wg.Wait()
	c.held = nil
}

func (c *claims) takeAll(hosts []*steps.Host) error {
	var g errgroup.Group
	g.SetLimit(max(c.Parallel, 1))
	for _, h := range hosts {
		g.Go(func() error { return c.take(h) })
	}
	return g.Wait()
}

func (c *claims) takeInTurn(hosts []*steps.Host) error {
	until := time.Now().Add(claimWait)
	for _, h := range hosts {
		for {
			err := c.take(h)
			if busy := (*BusyError)(nil); err == nil || !errors.As(err, &busy) || time.Now().After(until) {
				if err != nil {
					return err
				}
				break
			}
			select {
			case <-time.After(100 * time.Millisecond):
			case <-c.run.Done():
				return context.Cause(c.run)
			}
		}
	}
	return nil
}

// take takes the lease of one host, and holds it until it is released.
func (c *claims) take(h *steps.Host) error {
	holding, stop := context.WithCancel(c.run)
	first, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		if err := c.hold(holding, h, func() {
			select {
			case first <- nil:
			default: // it was taken again
			}
		}); err != nil {
			select {
			case first <- err:
			default:
			}
		}
	}()
	give := func() {
		stop()
		<-ended
	}
	select {
	case err := <-first:
		if err != nil {
			give()
			return err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.held = append(c.held, give)
		return nil
	case <-c.run.Done():
		give()
		return context.Cause(c.run)
	}
}

// hold keeps a lease until ctx ends. Once it had it, another holder ends the run, and
// the loss of the connection does not.
func (c *claims) hold(ctx context.Context, h *steps.Host, got func()) error {
	held := false
	for {
		err := h.Hold(ctx, c.lease, func() { held = true; got() })
		var taken *runner.HeldError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &taken):
			busy := c.busy(h.Name, taken)
			if held {
				c.lost(busy)
			}
			return busy
		case !held:
			return fmt.Errorf("keep other runs away, on host %s: %w", h.Name, err)
		}
		h.Log.DebugContext(ctx, "the lease is to be taken again", "err", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

// alone takes the lease of the cluster's keeper and gives it back: who is not alone
// hears of it before anything else is asked. What else goes wrong with it, the claim
// of the run will tell.
func (s *Session) alone(ctx context.Context, keeper *runner.Runner) error {
	taken, back := context.WithCancel(ctx)
	defer back()
	var held *runner.HeldError
	err := keeper.Hold(taken, s.lease(), back)
	if errors.As(err, &held) {
		return s.busy(s.keeperName(), held)
	}
	// What this machine's own disk refused (the host's key, to be recorded) is said now: a
	// second connection would find the key in memory, and nobody would be told.
	if _, own := errors.AsType[*fs.PathError](err); own {
		return err
	}
	return nil
}

// keeperName names the host that says which run works on the cluster before anything
// else is asked: the first master that is not away, and without one the first host.
func (s *Session) keeperName() string {
	for _, h := range append(s.Cluster.HostsWith(manifest.RoleMaster), s.Cluster.Spec.Hosts...) {
		if !slices.Contains(s.Away, h.Name) {
			return h.Name
		}
	}
	return ""
}
