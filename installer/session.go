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

// Options configure a session.
type Options struct {
	Cluster *manifest.Cluster
	Bundle  *bundle.Bundle // nil if the run opens no artifact
	Base    string         // the folder that contains .kubexm
	Log     *slog.Logger

	LookupEnv func(string) (string, bool)
	Home      string // of the user, for ~ and known_hosts
	// Version is the version of kubexm, for the audit log.
	Version string
	// Parallel is the number of hosts that are contacted concurrently.
	Parallel int
	// Timeouts bound how long a registry or a store may be silent. CommandTimeout is the time
	// limit of a single command on a host unless its step sets another. Zero values select
	// defaults.
	Timeouts       transfer.Timeouts
	CommandTimeout time.Duration
	// Exclusive makes opening fail with a *BusyError if another run works on the cluster, before
	// facts are read from hosts. For runs that change something.
	Exclusive bool
	// Away are the names of hosts that kubexm does not connect to.
	Away []string
}

// Session is one run on one cluster: its folder is locked, its hosts are connected.
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
	sets     []string          // sets of the lock that the running plan uses; none before

	highest     int64 // highest serial that the cluster has had, as far as known
	appliedOnce sync.Once
	appliedBase steps.Applied // the part of the run's records that does not change during the run
	operation   string        // id of the run's operation; "" before it has one
	part        bool          // part of another session's work, without its own operation
}

// HostError is the reason why one host could not be reached.
type HostError struct {
	Host, Address string
	Err           error
}

func (e *HostError) Error() string { return fmt.Sprintf("host %s (%s): %v", e.Host, e.Address, e.Err) }

// Unwrap returns the cause.
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

// Unwrap returns each of them.
func (e HostErrors) Unwrap() []error { return e }

// byHost returns the errors of hosts by their names.
func (e HostErrors) byHost() map[string]*HostError {
	out := map[string]*HostError{}
	for _, err := range e {
		if h, ok := errors.AsType[*HostError](err); ok {
			out[h.Host] = h
		}
	}
	return out
}

// Open locks the cluster's folder, connects to every host and reads its facts. It reports
// every host that it cannot reach, not only the first.
func Open(ctx context.Context, o Options) (*Session, error) {
	s, failed, err := Reach(ctx, o)
	if err == nil && len(failed) > 0 {
		return nil, errors.Join(failed, s.Close())
	}
	return s, err
}

// newSession locks a cluster's folder and opens its audit log.
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

// Close closes the connections and unlocks the folder.
func (s *Session) Close() error {
	var errs []error
	for _, c := range s.conns {
		errs = append(errs, c.Close())
	}
	errs = append(errs, s.audit.Close())
	s.unlock()
	return errors.Join(errs...)
}

// reachAll connects to all hosts and returns the reasons for those that cannot be reached.
func (s *Session) reachAll(ctx context.Context) (HostErrors, error) {
	if err := s.checkSecrets(); err != nil {
		return nil, err
	}
	if err := s.Workdir.recordDialed(s.Cluster); err != nil {
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
	_ = g.Wait() // the functions above collect their errors
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
	r := runner.New(conn, runner.Options{Redactor: s.redactor, Log: log, DefaultTimeout: s.CommandTimeout})
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if s.Exclusive && h.Name == s.keeperName() {
		if err := s.checkAlone(ctx, r); err != nil {
			return nil, err
		}
	}
	facts, err := r.Facts(ctx)
	if err != nil {
		return nil, err
	}
	host := &steps.Host{
		Host: h, Runner: r, Platform: plan.PlatformOf(h), Cluster: s.Cluster, Facts: facts, Workdir: s.Workdir.Dir, Log: log,
		Reveal: s.reveal, Timeouts: s.Timeouts, Away: s.Away,
	}
	s.equip(host)
	return host, nil
}

// equip provides a host with the content of the bundle.
func (s *Session) equip(h *steps.Host) {
	if s.Bundle != nil {
		h.Applied, h.BundleTime = s.applied, s.Bundle.Lock.Created
		h.Artifacts = artifacts{bundle: s.Bundle, set: s.Set(), sets: func() []string { return s.sets }, home: s.home}
	}
}

// Set returns the set of the lock for the config's Kubernetes version.
func (s *Session) Set() string { return s.Cluster.Spec.Kubernetes.Version }

// Host returns the facade of a host.
func (s *Session) Host(h manifest.Host) *steps.Host { return s.hosts[h.Name] }
