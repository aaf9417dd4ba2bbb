package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/sign"
	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/cluster"
)

// siteFlags are the flags of commands that work on a cluster's hosts.
type siteFlags struct {
	policyFlags
	baseFlags
	config    string
	bundle    string
	workdir   string
	parallel  int
	dryRun    bool
	resume    bool
	rollback  string // what a step that fails takes with it
	yes       bool
	keep      bool // etcd's data and the images
	keepSaid  bool
	skip      []string  // checks that are left out
	skipHosts []string  // hosts that the command goes without
	signing   signFlags // of the receipt; of it --key is called --sign-key here
	older     bool      // a bundle older than the cluster's is taken
	batch     batchFlag // how many hosts at once a rolling change visits
	hostKeys  string    // which host keys are trusted; "": as the config says
}

func (f *siteFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVarP(&f.config, "filename", "f", "", also(useConfig, "without it the bundle's own"))
	fs.StringVarP(&f.bundle, "bundle", "b", "", useBundle)
	fs.StringVar(&f.workdir, "workdir", ".", useWorkdir)
	fs.IntVarP(&f.parallel, "parallel", "p", 16, useParallel+"steps")
	fs.BoolVar(&f.dryRun, "dry-run", false, also(useDryRun, "every host is looked at"))
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml")
	_ = cmd.MarkFlagFilename("bundle", "tar.zst", "001")
	f.policyFlags.add(cmd)
	f.baseFlags.add(cmd)
	f.addDial(cmd)
}

// site is what a command works on, before any host is asked.
type site struct {
	cluster  *manifest.Cluster
	bundle   *bundle.Bundle // nil without --bundle
	graph    *plan.Graph
	pipeline plan.Pipeline
	dryRun   bool
	deletion *installer.Deletion // of a command that takes a cluster away
	signer   *sign.Signer        // of the receipt; nil where it is not signed

	away   []string           // hosts that an installation goes without
	exists *manifest.Existing // what was applied before; read where hosts are away

	skip      []string        // checks that the plan leaves out
	batch     plan.Batch      // of a pipeline that rolls
	skipped   []string        // those of them that a person left out
	unchecked []steps.Finding // what is not looked at without a bundle

	// How the run went.
	journal, kubeconfig string
	receipt             string
	tally               tally
	took                time.Duration
}

// scope is what the plan of s is made for.
func (s *site) scope() plan.Scope {
	return plan.Scope{Want: s.cluster, Set: s.cluster.Spec.Kubernetes.Version, Skip: s.skip, Away: s.away, Exists: s.exists, Batch: s.batch}
}

// openSite verifies the bundle, reads the config, makes the plan and proves the
// bundle complete for it: all of that before a host is touched.
func (a *app) openSite(ctx context.Context, f *siteFlags, s *site) (err error) {
	if f.bundle == "" && f.config == "" {
		return &coded{error: errors.New("neither -f nor --bundle is given"), code: exitUsage, advice: "name the config, or the bundle that holds it"}
	}
	if err := f.check(); err != nil {
		return err
	}
	own, err := a.ownConfig(f.config)
	if err != nil {
		return err
	}
	if f.bundle != "" {
		policy, err := a.policy(&f.policyFlags, own)
		if err != nil {
			return err
		}
		if s.bundle, err = bundle.OpenPart(ctx, f.bundle, policy, bundle.Bases{Given: f.bases}); err != nil {
			return refused(err)
		}
	}
	if s.cluster, err = a.siteConfig(f, own, s.bundle, s.pipeline); err != nil {
		return err
	}
	if err := f.ownHosts(s.cluster); err != nil {
		return err
	}
	if err := installer.CheckWorkdir(f.workdir, s.cluster.Metadata.Name); err != nil {
		return err
	}
	if f.keepSaid {
		s.cluster.Spec.Etcd.PreserveData = f.keep
	}
	if err := f.leaveOut(s); err != nil {
		return err
	}
	if err := f.takeAway(s); err != nil {
		return err
	}
	if !s.pipeline.Away { // what is taken away is known when the hosts are reached
		if s.graph, err = plan.Build(s.pipeline, s.scope()); err != nil {
			return err
		}
	}
	if err := checkFiles(f, s); err != nil {
		return err
	}
	if err := s.bundled(); err != nil {
		return err
	}
	if s.bundle != nil && s.pipeline.Bundle != plan.BundleUnused {
		if err := planned(s.cluster, s.bundle.Lock); err != nil {
			return errors.Join(lacking(err), s.bundle.Close())
		}
		if err := f.notOlder(s); err != nil {
			return errors.Join(refused(err), s.bundle.Close())
		}
		if err := a.findBases(ctx, f, s); err != nil {
			return errors.Join(refused(err), s.bundle.Close())
		}
	}
	return nil
}

// findBases completes a delta with what lies on this machine. Files come from
// archives alone: without them no host has to be called to refuse.
func (a *app) findBases(ctx context.Context, f *siteFlags, s *site) error {
	if err := installer.FindBases(ctx, s.bundle, f.workdir, s.cluster.Metadata.Name); err != nil {
		return err
	}
	return s.bundle.LacksFiles()
}

// siteConfig is the config that -f names, else the bundle's.
// It is refused where the pipeline cannot be carried out for it.
func (a *app) siteConfig(f *siteFlags, c *manifest.Cluster, b *bundle.Bundle, p plan.Pipeline) (*manifest.Cluster, error) {
	from := cmp.Or(f.config, "config of "+f.bundle)
	if c == nil {
		var problems manifest.Problems
		c, problems = manifest.Decode(bytes.NewReader(b.Config))
		if err := problems.In(from).Err(); err != nil {
			return nil, err
		}
		fromConfig(c, "")
	}
	var l *manifest.Lock
	if b != nil {
		l = b.Lock
	}
	return c, refusedBy(p, c, l).In(from).Err()
}

// runSite carries out a pipeline on the hosts, and ends the lines of -o json.
func (a *app) runSite(ctx context.Context, f *siteFlags, p plan.Pipeline) error {
	s := &site{pipeline: p, dryRun: f.dryRun, batch: f.batch.Batch}
	if a.structured() {
		a.lines = newRunLines(a.out, a.output)
	}
	err := a.onSite(ctx, f, s)
	if a.lines == nil {
		return err
	}
	return a.lines.end(ctx, s, err)
}

func (a *app) onSite(ctx context.Context, f *siteFlags, s *site) error {
	if err := a.openSite(ctx, f, s); err != nil {
		return err
	}
	if s.bundle != nil {
		defer s.bundle.Close()
	}
	if err := a.openSigner(ctx, f, s); err != nil {
		return err
	}
	if err := s.asked(); err != nil && !f.yes && !f.dryRun {
		return err
	}
	if err := a.confirmHosts(ctx, f, s); err != nil {
		return err
	}
	if err := a.wholeBundle(ctx, s); err != nil {
		return err
	}
	session, unreached, err := a.reach(ctx, f, s)
	if err != nil {
		return err
	}
	defer session.Close()
	if len(unreached) > 0 {
		return a.unreached(ctx, f, s, session, unreached)
	}
	if err := s.passOver(ctx, session); err != nil {
		return err
	}
	if err := session.CheckOperation(ctx, s.pipeline); err != nil {
		return otherOperation(err)
	}
	if s.bundle != nil && s.pipeline.Keeps {
		if err := session.CheckSerial(ctx, f.older); err != nil {
			return refused(err)
		}
		if err := a.keepExisting(ctx, f, s, session); err != nil {
			return err
		}
		if err := session.Recall(ctx); err != nil {
			return err
		}
		if err := session.Supply(ctx); err != nil {
			return refused(err)
		}
	}
	s.kubeconfig = cluster.KubeconfigPath(session.Workdir.Dir)
	if s.pipeline.Away {
		return a.remove(ctx, f, s, session)
	}
	if err := a.carryOut(ctx, f, s, session.Run); err != nil || f.dryRun || !s.pipeline.Keeps {
		return err
	}
	a.tellUndone(s)
	return a.writeReceipt(f, s, session)
}
