// Package site is what a command works on: the bundle opened and trusted, the config held
// against what can be carried out for it, the plan made and proved against the bundle,
// all before a host is called; then the hosts reached, a cluster that exists kept from
// harm, and the plan carried out. It prints nothing and asks no person.
package site

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/etcd"
	"github.com/mensylisir/kubexm/steps/registryd"
)

// Request is what a person asks for.
type Request struct {
	// Options are those of the session. Cluster is the config that the person names, nil
	// for the bundle's own; Bundle is nil, for Open opens it.
	installer.Options
	Pipeline plan.Pipeline

	Config  string        // the file that Cluster is from; "" where it is the bundle's own
	Archive string        // the bundle's file; "" is none
	Policy  bundle.Policy // whom the bundle is trusted from
	Given   []string      // archives that hold what a delta leaves out

	HostKeys  string     // which host keys are trusted; "": as the config says
	Preserve  *bool      // whether a deletion leaves etcd's data and the images; nil: as the config says
	SkipCheck []string   // checks to leave out, with or without "preflight."
	SkipHosts []string   // hosts to go without
	Older     bool       // accept a bundle older than the cluster's
	Batch     plan.Batch // of a pipeline that rolls
	DryRun    bool
	Stop      <-chan struct{} // closed to end in good order
}

// Site is a request with all that is known of it.
type Site struct {
	Request
	Graph    *plan.Graph
	Deletion *installer.Deletion // of a pipeline that takes a cluster away
	Session  *installer.Session  // nil before Reach
	Exists   *manifest.Existing  // what was applied before; read where hosts are away

	Skipped   []string        // checks that a person left out
	Unchecked []steps.Finding // what is not looked at without a bundle

	skip []string // checks that the plan leaves out
}

// Open opens the bundle, reads the config, makes the plan and proves the bundle complete
// for it: all of that before a host is called. With an error the Site is closed, and tells
// what was known by then.
func Open(ctx context.Context, r Request) (*Site, error) {
	s := &Site{Request: r}
	s.Cluster = nil
	if err := s.open(ctx, r.Cluster); err != nil {
		return s, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close ends the session, and closes the bundle.
func (s *Site) Close() error {
	var errs []error
	if s.Session != nil {
		errs = append(errs, s.Session.Close())
	}
	if s.Bundle != nil {
		errs = append(errs, s.Bundle.Close())
	}
	s.Session, s.Bundle = nil, nil
	return errors.Join(errs...)
}

func (s *Site) open(ctx context.Context, own *manifest.Cluster) (err error) {
	if s.Archive != "" {
		if s.Bundle, err = bundle.OpenPart(ctx, s.Archive, s.Policy, bundle.Bases{Given: s.Given}); err != nil {
			return err
		}
	}
	if s.Cluster, err = Config(own, s.from(), s.Bundle, s.Pipeline); err != nil {
		return err
	}
	if err := s.checkHosts(); err != nil {
		return err
	}
	if err := installer.CheckWorkdir(s.Base, s.Cluster.Metadata.Name); err != nil {
		return err
	}
	if s.Preserve != nil {
		s.Cluster.Spec.Etcd.PreserveData = *s.Preserve
	}
	if err := s.leaveOut(); err != nil {
		return err
	}
	if err := s.takeAway(); err != nil {
		return err
	}
	if !s.Pipeline.Away { // what is taken away is known when the hosts are reached
		if s.Graph, err = plan.Build(s.Pipeline, s.Scope()); err != nil {
			return err
		}
	}
	if err := s.checkFiles(); err != nil {
		return err
	}
	if s.Bundle == nil && s.Pipeline.Bundle == plan.BundleNeeded && len(s.Cluster.Spec.Bundle.OperatingSystems) > 0 {
		return &refusal.Error{Err: errors.New("the config names operating systems whose packages the hosts get, and --bundle is not given"), Kind: refusal.Usage, Advice: "name the bundle"}
	}
	if s.Bundle == nil || s.Pipeline.Bundle == plan.BundleUnused {
		return nil
	}
	return s.prove(ctx)
}

// prove holds the bundle against the plan, and against what the cluster has had.
func (s *Site) prove(ctx context.Context) error {
	if err := Complete(s.Cluster, s.Bundle.Lock); err != nil {
		return Lacking(err)
	}
	if !s.Older && s.Pipeline.Keeps { // the cluster itself is asked once its hosts are reached
		if err := installer.CheckSerial(s.Base, s.Bundle.Lock, s.Cluster.Metadata.Name); err != nil {
			return err
		}
	}
	if err := installer.FindBases(ctx, s.Bundle, s.Base, s.Cluster.Metadata.Name); err != nil {
		return err
	}
	return s.Bundle.LacksFiles() // they come from archives alone: no host has to be called to refuse
}

// Config is the config that a person names, else the one in the bundle. It is refused
// where p cannot be carried out for it. from says in messages where it is from.
func Config(own *manifest.Cluster, from string, b *bundle.Bundle, p plan.Pipeline) (*manifest.Cluster, error) {
	c := own
	if c == nil {
		var problems manifest.Problems
		c, problems = manifest.Decode(bytes.NewReader(b.Config))
		if err := problems.In(from).Err(); err != nil {
			return nil, err
		}
		c.PlaceFiles(".")
	}
	var l *manifest.Lock
	if b != nil {
		l = b.Lock
	}
	return c, RefusedBy(p, c, l).In(from).Err()
}

// from says in messages where the config is from.
func (s *Site) from() string { return cmp.Or(s.Config, "config of "+s.Archive) }

// checkHosts refuses what a config out of a bundle says of this machine, and has all hosts
// trust the host keys that were asked for.
func (s *Site) checkHosts() error {
	if s.Config == "" { // whoever made the bundle wrote it
		if err := s.Cluster.CheckCarried(s.HostKeys != "").In(s.from()).Err(); err != nil {
			return err
		}
	}
	s.Cluster.TrustHostKeys(s.HostKeys)
	return nil
}

// checkFiles looks at the files that a config names on this machine before a host is
// called, where they are going to be used.
func (s *Site) checkFiles() error {
	if !s.Pipeline.Keeps {
		return nil
	}
	all := slices.Concat(etcd.CheckFiles(s.Cluster, time.Now()), registryd.CheckFiles(s.Cluster, time.Now()))
	return all.In(s.from()).Err()
}

// Scope is what the plan is made for.
func (s *Site) Scope() plan.Scope {
	return plan.Scope{Want: s.Cluster, Set: s.Cluster.Spec.Kubernetes.Version, Skip: s.skip, Away: s.Away, Exists: s.Exists, Batch: s.Batch}
}

// Confirm gives what a person has to confirm first; nil where that is nothing.
func (s *Site) Confirm() error {
	what := s.Pipeline.Question(s.Cluster, s.Graph)
	if what == "" {
		return nil
	}
	return &refusal.Error{Err: errors.New(s.Pipeline.Name + " of cluster " + s.Cluster.Metadata.Name + " " + what),
		Kind: refusal.Usage, Advice: "--yes does it; --dry-run says what it would do"}
}

// Unseen gives the hosts that only the bundle's config names and that no earlier run of
// the workdir has dialed.
func (s *Site) Unseen() ([]string, error) {
	if s.Config != "" {
		return nil, nil
	}
	return installer.Unseen(s.Base, s.Cluster)
}

// Sends tells whether hosts are sent what the bundle holds: who runs the pipeline reads
// every byte of the bundle first, so that no host is called for a damaged one.
func (s *Site) Sends() bool { return s.Bundle != nil && s.Pipeline.Bundle == plan.BundleNeeded }
