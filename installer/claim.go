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

// BusyError reports that another run works on hosts of the same cluster.
type BusyError struct {
	At     string // the locked folder on this machine, or the host with the lease
	Holder string // user, machine, start time and cluster of the other run; "" if not recorded
	Other  bool   // the other run works on another cluster that lists the same host
}

func (e *BusyError) Error() string {
	switch {
	case e.Holder == "":
		return fmt.Sprintf("another run works on this cluster: it has locked %s", e.At)
	case e.Other:
		return fmt.Sprintf("another run works on host %s: %s", e.At, e.Holder)
	}
	return fmt.Sprintf("another run works on this cluster (lock on %s): %s", e.At, e.Holder)
}

// Advice returns what the user can do; see steps.Advice.
func (e *BusyError) Advice() string {
	if e.Other {
		return "wait for the other run to end, and find out why two configs list this host"
	}
	return "wait for the other run to end: two concurrent runs would undo each other's changes"
}

// holder describes this run: "process 712 of root on wd1 since 2026-…".
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

// leasePath is the same for all clusters, because a host belongs to only one of them.
const leasePath = "/run/kubexm/kubexm.run"

const forCluster = ", for cluster "

// lease returns the lease that this run takes on a host.
func (s *Session) lease() runner.Lease {
	return runner.Lease{Path: leasePath, Holder: holder(time.Now()) + forCluster + s.Cluster.Metadata.Name}
}

// busyError explains why a lease cannot be acquired.
func (s *Session) busyError(host string, err *runner.HeldError) *BusyError {
	_, cluster, found := strings.Cut(err.Holder, forCluster)
	return &BusyError{At: host, Holder: err.Holder, Other: found && cluster != s.Cluster.Metadata.Name}
}

// claimWait is how long kubexm waits for leases that another run holds. That run may be about
// to release them because it could not acquire all of its own.
const claimWait = 400 * time.Millisecond

// claim keeps other runs away from the hosts of a plan, whatever machine they run on and
// whatever cluster they are for. It holds a lease on each host, and returns a context that is
// cancelled when another run has acquired one of them. A host that is unreachable for a while,
// for example during a reboot, does not end the run.
//
// All leases are requested concurrently. If one is held by another run, all are released and
// then acquired one after another, in an order that is the same for every run. Of two runs
// with hosts in common, one then acquires all of its leases.
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
		err = c.takeOneByOne(hosts)
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

// claimed returns the hosts of a plan, each machine once, ordered by machine id: names and
// addresses may differ from one config to another.
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
	return slices.CompactFunc(out, func(a, b *steps.Host) bool { // the checks report a host that is listed twice
		return a.Facts.MachineID != "" && a.Facts.MachineID == b.Facts.MachineID && a.Facts.BootID == b.Facts.BootID
	})
}

// claims are the leases that a run holds.
type claims struct {
	*Session
	lease runner.Lease
	run   context.Context //nolint:containedctx // it lasts as long as the claims, which end it
	lost  context.CancelCauseFunc

	mu   sync.Mutex
	held []func()
}

// release releases all leases and waits until that is done.
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

func (c *claims) takeOneByOne(hosts []*steps.Host) error {
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

// take acquires the lease of one host and holds it until it is released.
func (c *claims) take(h *steps.Host) error {
	holding, stop := context.WithCancel(c.run)
	first, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		if err := c.hold(holding, h, func() {
			select {
			case first <- nil:
			default: // acquired again after a lost connection
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

// hold keeps a lease until ctx ends. After it was acquired, another holder ends the run; a
// lost connection does not.
func (c *claims) hold(ctx context.Context, h *steps.Host, got func()) error {
	held := false
	for {
		err := h.Hold(ctx, c.lease, func() { held = true; got() })
		var taken *runner.HeldError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &taken):
			busy := c.busyError(h.Name, taken)
			if held {
				c.lost(busy)
			}
			return busy
		case !held:
			return fmt.Errorf("acquire the lease of this run on host %s: %w", h.Name, err)
		}
		h.Log.DebugContext(ctx, "the lease is lost and is acquired again", "err", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

// checkAlone acquires the lease on the keeper host and releases it, so that a concurrent run is
// reported before anything else is requested from hosts. Other lease errors are left to the
// claim of the run.
func (s *Session) checkAlone(ctx context.Context, keeper *runner.Runner) error {
	taken, back := context.WithCancel(ctx)
	defer back()
	var held *runner.HeldError
	err := keeper.Hold(taken, s.lease(), back)
	if errors.As(err, &held) {
		return s.busyError(s.keeperName(), held)
	}
	// An error of this machine's own disk (recording the host's key) is reported now: a second
	// connection would find the key in memory, and the error would be lost.
	if _, own := errors.AsType[*fs.PathError](err); own {
		return err
	}
	return nil
}

// keeperName returns the host whose lease shows which run works on the cluster: the first
// master that is not skipped, or the first host if there is none.
func (s *Session) keeperName() string {
	for _, h := range append(s.Cluster.HostsWith(manifest.RoleMaster), s.Cluster.Spec.Hosts...) {
		if !slices.Contains(s.Away, h.Name) {
			return h.Name
		}
	}
	return ""
}
