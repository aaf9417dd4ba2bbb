// Package site prepares and executes the work of a command. Before a host is contacted it
// opens and verifies the bundle, checks that the config is supported, makes the plan, and
// checks that the bundle is complete for it. Then it connects to the hosts, protects an
// existing cluster, and executes the plan. It prints nothing and asks no user.
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

// Request is a user's request.
type Request struct {
	// Options are those of the session. Cluster is the user's config, nil for the bundle's
	// own; Bundle must be nil, because Open opens it.
	installer.Options
	Pipeline plan.Pipeline

	Config  string        // the file of Cluster; "" for the bundle's own config
	Archive string        // the bundle's file; "" without a bundle
	Policy  bundle.Policy // which signers of the bundle are trusted
	Bases   []string      // archives with the content that a delta leaves out

	HostKeys   string     // which host keys are trusted; "": as in the config
	Preserve   *bool      // whether a deletion preserves etcd's data and the images; nil: as in the config
	SkipCheck  []string   // checks to skip, with or without "preflight."
	SkipHosts  []string   // hosts to skip
	Targets    []string   // hosts that the command names
	Dead       bool       // the named hosts do not answer
	AllowEven  bool       // accept an even number of etcd members
	AllowOlder bool       // accept a bundle older than the cluster's
	Batch      plan.Batch // of a pipeline that runs in batches
	Flags      []string   // names of the pipeline's flags that are given
	Drain      plan.Drain // of a pipeline that drains nodes
	DryRun     bool
	Stop       <-chan struct{} // closed for a graceful stop
}

// Site is a request with its state.
type Site struct {
	Request
	Graph    *plan.Graph
	Deletion *installer.Deletion   // of a pipeline that deletes a cluster
	Change   *installer.Membership // of a pipeline that changes the hosts of a cluster
	Session  *installer.Session    // nil before Reach
	Exists   *manifest.Existing    // the cluster record; read only if hosts are skipped, or join or leave

	Skipped   []string        // checks that the user skipped
	Unchecked []steps.Finding // checks that cannot run without a bundle

	skip []string // checks that the plan leaves out
}

// Open opens the bundle, reads the config, makes the plan and checks that the bundle is
// complete for it, all before a host is contacted. On an error the returned Site is closed,
// and contains what was known by then.
func Open(ctx context.Context, r Request) (*Site, error) {
	s := &Site{Request: r}
	s.Cluster = nil
	if err := s.open(ctx, r.Cluster); err != nil {
		return s, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close closes the session and the bundle.
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
		if s.Bundle, err = bundle.OpenPartial(ctx, s.Archive, s.Policy, bundle.Bases{Explicit: s.Bases}); err != nil {
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
	if err := s.skipChecks(); err != nil {
		return err
	}
	if err := s.setAway(); err != nil {
		return err
	}
	if s.Pipeline.Membership == plan.KeepsHosts {
		if err := CheckTargets(s.Pipeline, s.Cluster, s.Targets); err != nil {
			return err
		}
	}
	if !s.Pipeline.Deletes && s.Pipeline.Membership == plan.KeepsHosts { // otherwise the record decides, which is read from the hosts
		if s.Graph, err = plan.Build(s.Pipeline, s.Scope()); err != nil {
			return err
		}
	}
	if err := s.checkFiles(); err != nil {
		return err
	}
	if s.Bundle == nil && s.Pipeline.Membership == plan.AddsHosts {
		return &refusal.Error{Err: errors.New("new hosts need the programs and images of the cluster, but --bundle is missing"), Kind: refusal.Usage, Advice: "specify the bundle with --bundle: it must contain the versions of the cluster"}
	}
	if s.Bundle == nil && s.Pipeline.Bundle == plan.BundleNeeded && len(s.Cluster.Spec.Bundle.OperatingSystems) > 0 {
		return &refusal.Error{Err: errors.New("the config lists operating systems whose packages the hosts require, but --bundle is missing"), Kind: refusal.Usage, Advice: "specify the bundle with --bundle"}
	}
	if s.Bundle == nil || s.Pipeline.Bundle == plan.BundleUnused {
		return nil
	}
	return s.checkBundle(ctx)
}

// checkBundle checks the bundle against the plan, and against the cluster's highest serial.
func (s *Site) checkBundle(ctx context.Context) error {
	if err := Complete(s.Cluster, s.Bundle.Lock); err != nil {
		return WrapMismatch(err)
	}
	if !s.AllowOlder && s.Pipeline.WritesRecord { // the cluster itself is queried after connecting to its hosts
		if err := installer.CheckSerial(s.Base, s.Bundle.Lock, s.Cluster.Metadata.Name); err != nil {
			return err
		}
	}
	if err := installer.FindBases(ctx, s.Bundle, s.Base, s.Cluster.Metadata.Name); err != nil {
		return err
	}
	return s.Bundle.CheckFiles() // files are only in archives: no host has to be contacted
}

// Config returns the user's config, or else the one in the bundle. It returns an error if p
// does not support it. from is the config's name in messages.
func Config(own *manifest.Cluster, from string, b *bundle.Bundle, p plan.Pipeline) (*manifest.Cluster, error) {
	c := own
	if c == nil {
		var problems manifest.Problems
		c, problems = manifest.Decode(bytes.NewReader(b.Config))
		if err := problems.In(from).Err(); err != nil {
			return nil, err
		}
		c.ResolvePaths(".")
	}
	var l *manifest.Lock
	if b != nil {
		l = b.Lock
	}
	return c, UnsupportedBy(p, c, l).In(from).Err()
}

// from returns the config's name for messages.
func (s *Site) from() string { return cmp.Or(s.Config, "config of "+s.Archive) }

// checkHosts refuses a bundle's config that refers to this machine, and sets the requested
// host key policy on all hosts.
func (s *Site) checkHosts() error {
	if s.Config == "" { // written by the maker of the bundle
		if err := s.Cluster.CheckBundled(s.HostKeys != "").In(s.from()).Err(); err != nil {
			return err
		}
	}
	s.Cluster.TrustHostKeys(s.HostKeys)
	return nil
}

// checkFiles checks the files on this machine that a config refers to before a host is
// contacted, if the pipeline uses them.
func (s *Site) checkFiles() error {
	if !s.Pipeline.WritesRecord {
		return nil
	}
	all := slices.Concat(etcd.CheckFiles(s.Cluster, time.Now()), registryd.CheckFiles(s.Cluster, time.Now()))
	return all.In(s.from()).Err()
}

// Scope returns the scope of the plan.
func (s *Site) Scope() plan.Scope {
	out := plan.Scope{Want: s.Cluster, Set: s.Cluster.Spec.Kubernetes.Version, Skip: s.skip, Away: s.Away, Exists: s.Exists, Batch: s.Batch, Drain: s.Drain, Targets: s.Targets, Flags: s.Flags}
	if s.Change == nil {
		return out
	}
	out.Want, out.Away = s.Change.After, slices.Concat(s.Away, s.Change.Dead)
	if s.Pipeline.Membership == plan.RemovesHosts {
		out.Before, out.Targets = s.Change.Before, nil
	} else {
		out.Targets = s.Change.Targets
	}
	return out
}

// Confirm returns an error that states what the user has to confirm; nil if nothing.
func (s *Site) Confirm() error {
	what := s.Pipeline.ConfirmationFor(s.Cluster, s.Graph)
	if what == "" {
		return nil
	}
	return &refusal.Error{Err: errors.New(s.Pipeline.Name + " of cluster " + s.Cluster.Metadata.Name + " " + what),
		Kind: refusal.Usage, Advice: "add --yes to confirm; --dry-run shows what would be done"}
}

// UnknownHosts returns the hosts that are only listed in the bundle's config and that no
// earlier run of the workdir has connected to.
func (s *Site) UnknownHosts() ([]string, error) {
	if s.Config != "" {
		return nil, nil
	}
	return installer.UnknownHosts(s.Base, s.Cluster)
}

// SendsContent reports whether content of the bundle is sent to hosts. Then the caller reads
// every byte of the bundle first, so that no host is contacted for a damaged one.
func (s *Site) SendsContent() bool { return s.Bundle != nil && s.Pipeline.Bundle == plan.BundleNeeded }
