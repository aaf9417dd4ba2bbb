package installer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// BusyError says that another run works on the same cluster.
type BusyError struct {
	At     string // the folder here, or the host that says so
	Holder string // who, where, since when; "" where it did not say
}

func (e *BusyError) Error() string {
	if e.Holder == "" {
		return fmt.Sprintf("another run works on this cluster: it has locked %s", e.At)
	}
	return fmt.Sprintf("another run works on this cluster, as %s says: %s", e.At, e.Holder)
}

// Advice says what to do.
func (e *BusyError) Advice() string {
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

// claim keeps runs on other machines away from the cluster. It holds a lease on the
// host that every run knows, and gives a context that ends when somebody else has
// taken the lease. A host out of reach for a while, as while it reboots, does not
// end the run.
func (s *Session) claim(ctx context.Context) (context.Context, func(), error) {
	h := s.keeper()
	if h == nil {
		return ctx, func() {}, nil
	}
	lease := s.lease()
	run, lost := context.WithCancelCause(ctx)
	holding, release := context.WithCancel(run)
	first, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		held := false
		for {
			err := h.Hold(holding, lease, func() {
				held = true
				select {
				case first <- nil:
				default:
				}
			})
			var taken *runner.HeldError
			switch {
			case holding.Err() != nil:
				return
			case errors.As(err, &taken):
				err = &BusyError{At: h.Name, Holder: taken.Holder}
				lost(err)
			case held:
				h.Log.DebugContext(ctx, "the lease is to be taken again", "err", err)
				select {
				case <-holding.Done():
					return
				case <-time.After(time.Second):
				}
				continue
			}
			first <- err
			return
		}
	}()
	end := func() {
		release()
		<-ended
		lost(nil)
	}
	select {
	case err := <-first:
		if err != nil {
			end()
			var busy *BusyError
			if !errors.As(err, &busy) {
				err = fmt.Errorf("keep other runs away, on host %s: %w", h.Name, err)
			}
			return ctx, nil, err
		}
		return run, end, nil
	case <-ctx.Done():
		end()
		return ctx, nil, ctx.Err()
	}
}

// lease is the claim of this run on the cluster.
func (s *Session) lease() runner.Lease {
	return runner.Lease{Path: "/run/kubexm/" + s.Cluster.Metadata.Name + ".run", Holder: holder(time.Now())}
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
		return &BusyError{At: s.keeperName(), Holder: held.Holder}
	}
	// What this machine's own disk refused (the host's key, to be recorded) is said now: a
	// second connection would find the key in memory, and nobody would be told.
	if _, own := errors.AsType[*fs.PathError](err); own {
		return err
	}
	return nil
}

// keeperName names the host that says which run works on the cluster: the first
// master, and without one the first host.
func (s *Session) keeperName() string {
	for _, h := range append(s.Cluster.HostsWith(manifest.RoleMaster), s.Cluster.Spec.Hosts...) {
		return h.Name
	}
	return ""
}

// keeper is that host.
func (s *Session) keeper() *steps.Host { return s.hosts[s.keeperName()] }
