package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle/sign"
	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/report"
	"github.com/mensylisir/kubexm/installer/site"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
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
	rollback  string // what is undone when a step fails
	yes       bool
	preserve  bool      // etcd's data and the images
	keepGiven bool      // --preserve-data was given
	skip      []string  // skipped checks
	skipHosts []string  // skipped hosts
	flags     []string  // flags of the pipeline that are given
	signing   signFlags // of the receipt; its --key is called --sign-key here
	older     bool      // accept a bundle older than the cluster's
	batch     batchFlag // size of a batch of a rolling change
	drain     drainFlags
	hostKeys  string   // which host keys are trusted; "" for the config's policy
	targets   []string // hosts that the command names
	membershipFlags
}

func (f *siteFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVarP(&f.config, "filename", "f", "", also(useConfig, "default the bundle's own"))
	fs.StringVarP(&f.bundle, "bundle", "b", "", useBundle)
	fs.StringVar(&f.workdir, "workdir", ".", useWorkdir)
	fs.IntVarP(&f.parallel, "parallel", "p", 16, useParallel+"steps")
	fs.BoolVar(&f.dryRun, "dry-run", false, also(useDryRun, "every host is checked"))
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml")
	_ = cmd.MarkFlagFilename("bundle", "tar.zst", "001")
	f.policyFlags.add(cmd)
	f.baseFlags.add(cmd)
	f.addDial(cmd)
}

// siteRun is a command on a site, and its result.
type siteRun struct {
	*site.Site
	signer *sign.Signer // of the receipt; nil if it is not signed

	journal, kubeconfig string
	receipt             string
	tally               report.Tally
	took                time.Duration
}

func newSiteRun(p plan.Pipeline, dryRun bool) *siteRun {
	return &siteRun{Site: &site.Site{Request: site.Request{Pipeline: p, DryRun: dryRun}}}
}

// options returns the options of an installer session.
func (a *app) options(workdir string, parallel int, c *manifest.Cluster) installer.Options {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/root"
	}
	return installer.Options{Cluster: c, Base: workdir, Log: a.log, LookupEnv: a.env, Home: home, Parallel: parallel, Version: ownVersion()}
}

// openSite opens the bundle, reads the config and builds the plan. It contacts no host.
func (a *app) openSite(ctx context.Context, f *siteFlags, s *siteRun) error {
	if f.bundle == "" && f.config == "" {
		return &refusal.Error{Err: errors.New("neither -f nor --bundle is given"), Kind: refusal.Usage, Advice: "specify the config, or the bundle that contains it"}
	}
	if err := f.check(); err != nil {
		return err
	}
	own, err := a.ownConfig(f.config)
	if err != nil {
		return err
	}
	r := site.Request{
		Options: a.options(f.workdir, f.parallel, own), Pipeline: s.Pipeline, Config: f.config, Archive: f.bundle, Bases: f.bases, HostKeys: f.hostKeys,
		SkipCheck: f.skip, SkipHosts: f.skipHosts, AllowOlder: f.older, Batch: f.batch.Batch, Drain: f.drain.Drain, DryRun: f.dryRun, Stop: a.stop,
		Targets: f.targets, Flags: f.flags, Dead: f.dead, AllowEven: f.allowEven,
	}
	if f.keepGiven {
		r.Preserve = &f.preserve
	}
	if f.bundle != "" {
		if r.Policy, err = a.policy(&f.policyFlags, own); err != nil {
			return err
		}
	}
	s.Site, err = site.Open(ctx, r)
	return report.Refused(err)
}

// runSite runs a pipeline on the hosts, and writes the summary line of -o json.
func (a *app) runSite(ctx context.Context, f *siteFlags, p plan.Pipeline) error {
	s := newSiteRun(p, f.dryRun)
	if a.structured() {
		a.lines = console.NewLines(a.out, a.output)
	}
	return a.endLines(ctx, s, a.onSite(ctx, f, s))
}

func (a *app) onSite(ctx context.Context, f *siteFlags, s *siteRun) (err error) {
	if err := a.openSite(ctx, f, s); err != nil {
		return err
	}
	defer s.Close()
	if err := a.openSigner(ctx, f, s); err != nil {
		return err
	}
	if err := a.consented(f, s); err != nil {
		return err
	}
	if err := a.confirmHosts(ctx, f, s); err != nil {
		return err
	}
	if err := a.readBundle(ctx, s); err != nil {
		return err
	}
	unreached, err := s.Reach(ctx)
	if err != nil {
		return err
	}
	if s.NothingToDo() {
		return a.reportNothing(s)
	}
	if len(unreached) > 0 {
		return a.unreached(ctx, s, unreached)
	}
	if err := s.CheckSkipped(ctx); err != nil {
		return err
	}
	if err := s.CheckOperation(ctx); err != nil {
		return err
	}
	if s.RecordsBundle() {
		if err := s.Session.CheckSerial(ctx, f.older); err != nil {
			return report.Refused(err)
		}
		if err := a.protectExisting(ctx, s); err != nil {
			return err
		}
		if err := s.Supply(ctx); err != nil {
			return report.Refused(err)
		}
	}
	if err := a.beforeMembership(ctx, s); err != nil {
		return err
	}
	if err := a.consent(ctx, f, s); err != nil {
		return err
	}
	s.kubeconfig = cluster.KubeconfigPath(s.Session.Workdir.Dir)
	if err := s.Begin(); err != nil {
		return err
	}
	if err := a.execPlan(ctx, f, s, s.Session.Run); err != nil {
		return err
	}
	if err := s.End(); err != nil {
		return err
	}
	return a.reportEnd(f, s)
}

// endLines writes the summary line if the output is JSON lines. It returns the error
// that ends the command.
func (a *app) endLines(ctx context.Context, s *siteRun, err error) error {
	if a.lines == nil {
		return err
	}
	code := exitCode(ctx, err)
	if err != nil && !errors.Is(err, errReported) && code != exitInterrupted {
		a.lines.Failed(err)
	}
	sum := console.Summary{Pipeline: s.Pipeline.Name, DryRun: s.DryRun, ExitCode: code, Steps: s.tally, Seconds: s.took.Seconds(), Journal: s.journal, Receipt: s.receipt, Skipped: s.Skipped}
	if s.Cluster != nil {
		sum.Cluster = s.Cluster.Metadata.Name
	}
	if lost := a.lines.End(sum); err == nil {
		return lost
	}
	return err
}

// readBundle verifies every byte of a bundle that is sent to hosts, so that a damaged
// bundle is refused before any host is contacted.
func (a *app) readBundle(ctx context.Context, s *siteRun) error {
	if !s.SendsContent() {
		return nil
	}
	p := a.progress(a.structured())
	p.Phase("verify")
	p.Expect(s.Bundle.DataBytes())
	err := s.Bundle.Verify(ctx, runtime.GOMAXPROCS(0), p.Add)
	p.Stop()
	return report.Refused(err)
}

// reportEnd reports the skipped hosts of a successful run, and writes the receipt.
func (a *app) reportEnd(f *siteFlags, s *siteRun) error {
	switch {
	case s.Pipeline.Deletes:
		a.reportLeft(s.RemainingOnHosts(), s.Deletion.Whole, "\n        recorded in "+filepath.Join(s.Session.Workdir.Dir, "left.json"))
		return nil
	case s.Pipeline.Membership == plan.RemovesHosts:
		return a.reportDeparted(f, s)
	case f.dryRun || !s.Pipeline.WritesRecord:
		return nil
	}
	a.reportLeft(s.NotApplied(), s.Cluster, "")
	return a.writeReceipt(f, s)
}

// reportLeft prints the work that is left on hosts; where is appended to each line.
func (a *app) reportLeft(found []steps.Finding, c *manifest.Cluster, where string) {
	for _, x := range found {
		if a.lines != nil {
			a.lines.Finding(x)
			continue
		}
		h, _ := c.Host(x.Host)
		fmt.Fprintf(a.out, "  left  %s (%s) %s%s\n  next  %s\n", x.Host, h.Address, x.What, where, x.Advice)
	}
}

// addSkipHost adds --skip-host, for commands that can continue without a host.
func (f *siteFlags) addSkipHost(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.skipHosts, "skip-host", nil, "continue without this host, and record that it was skipped; may be given several times")
}
