package installer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/transfer"
	"github.com/mensylisir/kubexm/installer/audit"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/ssh"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Options say what a run works with.
type Options struct {
	Cluster *manifest.Cluster
	Bundle  *bundle.Bundle // nil where the run opens no artifact
	Base    string         // the folder that .kubexm lies in
	Log     *slog.Logger

	LookupEnv func(string) (string, bool)
	Home      string // of the user, for ~ and known_hosts
	// Version is kubexm's own, for the audit log.
	Version string
	// Parallel is how many hosts are asked at once.
	Parallel int
	// Waits bound how long a registry or a store may say nothing, Patience how long a
	// single command on a host may where no step says otherwise; zero has defaults.
	Waits    transfer.Waits
	Patience time.Duration
	// Alone ends the opening with a *BusyError where another run works on the cluster,
	// before hosts are asked what they are: for who is going to change something.
	Alone bool
	// Away are hosts of the cluster that are not called, by name.
	Away []string
}

// Session is one run on one cluster: its folder locked, its hosts reached.
type Session struct {
	Options
	Workdir Workdir

	unlock   func()
	audit    *audit.Log
	redactor *connector.Redactor
	mu       sync.Mutex
	hosts    map[string]*steps.Host
	conns    []connector.Conn
	home     map[string]string // blobs that are read from the site's registry → their repository
	sets     []string          // of the lock, that the plan which is carried out names; none before

	highest   int64 // serial that the cluster has had, as far as it was asked
	brings    sync.Once
	brought   steps.Applied // what of the run's records does not change while it runs
	operation string        // the id of the run's; "" before it has one
	part      bool          // it is a part of another session's work, and no operation of its own
}

// HostError says why one host could not be reached.
type HostError struct {
	Host, Address string
	Err           error
}

func (e *HostError) Error() string { return fmt.Sprintf("host %s (%s): %v", e.Host, e.Address, e.Err) }

// Unwrap gives the cause.
func (e *HostError) Unwrap() error { return e.Err }

// HostErrors are all hosts that could not be reached, each with its reason.
type HostErrors []error

func (e HostErrors) Error() string {
	var lines []string
	for _, x := range e {
		lines = append(lines, x.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives each of them.
func (e HostErrors) Unwrap() []error { return e }

// Open locks the cluster's folder, reaches every host and gathers what it is.
// It reports every host that it cannot reach, not the first alone.
func Open(ctx context.Context, o Options) (*Session, error) {
	s, failed, err := Reach(ctx, o)
	if err == nil && len(failed) > 0 {
		return nil, errors.Join(failed, s.Close())
	}
	return s, err
}

// newSession takes a cluster's folder, and opens its audit log.
func newSession(ctx context.Context, o Options) (*Session, error) {
	w, err := NewWorkdir(o.Base, o.Cluster.Metadata.Name)
	if err != nil {
		return nil, err
	}
	unlock, err := w.Lock(ctx)
	if err != nil {
		return nil, err
	}
	s := &Session{Options: o, Workdir: w, unlock: unlock, hosts: map[string]*steps.Host{}, home: map[string]string{}}
	s.redactor = connector.NewRedactor(s.secrets()...)
	if s.audit, err = audit.Open(w.Audit(), o.Cluster.Metadata.Name, Who(o.LookupEnv), o.Version); err != nil {
		unlock()
		return nil, err
	}
	return s, nil
}

// Close ends the connections and gives the folder free.
func (s *Session) Close() error {
	var errs []error
	for _, c := range s.conns {
		errs = append(errs, c.Close())
	}
	errs = append(errs, s.audit.Close())
	s.unlock()
	return errors.Join(errs...)
}

// reachAll reaches the hosts that can be reached, and says why others cannot.
func (s *Session) reachAll(ctx context.Context) (HostErrors, error) {
	if err := s.checkSecrets(); err != nil {
		return nil, err
	}
	if err := s.Workdir.see(s.Cluster); err != nil {
		return nil, err
	}
	dialer := ssh.NewDialer(ssh.Env{
		LookupEnv: s.LookupEnv, ReadFile: readSecret, Home: s.Home, Record: s.Workdir.KnownHosts(), Log: s.Log,
		KnownHosts: []string{filepath.Join(s.Home, ".ssh", "known_hosts"), "/etc/ssh/ssh_known_hosts"},
	})
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var g errgroup.Group
	g.SetLimit(max(s.Parallel, 1))
	var failed HostErrors
	for _, h := range s.Cluster.Spec.Hosts {
		if slices.Contains(s.Away, h.Name) {
			continue
		}
		g.Go(func() error {
			host, err := s.reach(ctx, dialer, h)
			s.mu.Lock()
			defer s.mu.Unlock()
			if busy := (*BusyError)(nil); errors.As(err, &busy) {
				stop(busy)
			}
			if err != nil {
				failed = append(failed, &HostError{Host: h.Name, Address: h.Address, Err: err})
				return nil
			}
			s.hosts[h.Name] = host
			return nil
		})
	}
	_ = g.Wait() // the functions above keep their errors
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	slices.SortFunc(failed, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return failed, nil
}

func (s *Session) reach(ctx context.Context, d *ssh.Dialer, h manifest.Host) (*steps.Host, error) {
	wire, err := d.Host(h)
	if err != nil {
		return nil, err
	}
	conn := audit.Wrap(wire, h.Name, s.audit, s.redactor)
	s.mu.Lock()
	s.conns = append(s.conns, conn)
	s.mu.Unlock()
	log := s.Log.With("host", h.Name)
	r := runner.New(conn, runner.Options{Redactor: s.redactor, Log: log, Patience: s.Patience})
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if s.Alone && h.Name == s.keeperName() {
		if err := s.alone(ctx, r); err != nil {
			return nil, err
		}
	}
	facts, err := r.Facts(ctx)
	if err != nil {
		return nil, err
	}
	host := &steps.Host{
		Host: h, Runner: r, Platform: plan.PlatformOf(h), Cluster: s.Cluster, Facts: facts, Workdir: s.Workdir.Dir, Log: log,
		Reveal: s.reveal, Waits: s.Waits, Away: s.Away,
	}
	s.equip(host)
	return host, nil
}

// equip gives a host what the bundle holds.
func (s *Session) equip(h *steps.Host) {
	if s.Bundle != nil {
		h.Applied, h.Made = s.applied, s.Bundle.Lock.Created
		h.Artifacts = artifacts{bundle: s.Bundle, set: s.Set(), sets: func() []string { return s.sets }, home: s.home}
	}
}

// Set is the set of the lock that answers the config's Kubernetes version.
func (s *Session) Set() string { return s.Cluster.Spec.Kubernetes.Version }

// Host gives the facade of a host.
func (s *Session) Host(h manifest.Host) *steps.Host { return s.hosts[h.Name] }
