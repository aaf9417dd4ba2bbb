package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/sign"
	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubernetes"
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
	yes       bool
	keep      bool // etcd's data and the images
	keepSaid  bool
	skip      []string  // checks that are left out
	skipHosts []string  // hosts that a deletion passes over
	signing   signFlags // of the receipt; of it --key is called --sign-key here
	older     bool      // a bundle older than the cluster's is taken
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

func (a *app) installCommand() *cobra.Command {
	f := &siteFlags{}
	cmd := &cobra.Command{
		Use:   "install ARCHIVE [-f CONFIG]",
		Short: "Make the cluster that a bundle is for",
		Long: `Verify a bundle, reach every host, look at all of them, and make the cluster: the
registry filled straight from the archive, the runtime, the control plane, the pod
network, the workers, until all is Ready. It runs on a machine that is no member of the
cluster, over SSH. No packet leaves the site.

Run it again at any time: what is done is passed over. Ctrl-C once lets running steps
end, twice breaks them off. On a terminal a live view tells what runs where; --plain
and pipes get lines; --progress chooses. With -o json each event is one JSON object on a line of standard output,
and the last line is the summary.

A delta ("kubexm bundle build --since") is installed as a whole bundle is. What it leaves out comes
from the archives that --base names, from those that earlier runs here used and that still lie
where they did, and what is a layer of an image from the site's registry. When something is in none
of them, it is named and nothing is changed.

Before anything is changed, all hosts are looked at as "kubexm preflight" does it. --skip-checks
leaves checks out; which ones is said, and stands in the run's journal.

A cluster that was finished keeps its versions, its hosts and what was decided when it was made: a config
or a bundle with others is refused with exit code 3, and names each difference. New hosts join. A first
master whose machine was replaced is refused, too. docs/existing-cluster.md lists the fields.

--resume does not even look at what the last run saw done, which spares the time that looking
takes. It goes by the journal of that run, and only where config, bundle and kubexm are the same,
on hosts that have not booted since and that no other run has changed.

The config is the bundle's own unless -f gives another. Secrets are not in a bundle: give
them in -f, or in the environment variables that the command names when they are missing.

The bundle's own config reads no files of this machine but SSH's default keys, no environment
variables but KUBEXM_…, and does not say which host keys are trusted. Before the first connection
to its hosts from this workdir the command asks; --yes answers.`,
		Example: `  kubexm install demo.tar.zst --key cosign.pub -f config.yaml --dry-run
  kubexm install demo.tar.zst --key cosign.pub -f config.yaml
  kubexm install demo.tar.zst --key cosign.pub --yes    # its own config
  kubexm install demo.tar.zst --key cosign.pub -f config.yaml \
    --skip-checks memory
  kubexm install delta.tar.zst --key cosign.pub -f config.yaml \
    --base demo.tar.zst`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.takeArchive(cmd, args); err != nil {
				return err
			}
			return a.runSite(cmd.Context(), f, pipeline.Create())
		},
	}
	f.add(cmd)
	completeArchives(cmd)
	f.addResume(cmd)
	f.addReceipt(cmd)
	f.addSkip(cmd, "skip-preflight")
	f.addDowngrade(cmd)
	a.outputFlag(cmd, "text", "json")
	return cmd
}

func (a *app) createCommand() *cobra.Command {
	f := &siteFlags{}
	cluster := &cobra.Command{
		Use: "cluster ARCHIVE [-f CONFIG]", Short: "Make a cluster; the same as install", Args: cobra.MaximumNArgs(1),
		Example: "  kubexm create cluster demo.tar.zst -f config.yaml --key cosign.pub",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.takeArchive(cmd, args); err != nil {
				return err
			}
			return a.runSite(cmd.Context(), f, pipeline.Create())
		},
	}
	f.add(cluster)
	f.addResume(cluster)
	f.addReceipt(cluster)
	f.addSkip(cluster, "skip-preflight")
	f.addDowngrade(cluster)
	a.outputFlag(cluster, "text", "json")
	completeArchives(cluster)
	cmd := &cobra.Command{Use: "create", Short: "Make a cluster", Args: cobra.NoArgs}
	cmd.AddCommand(cluster)
	return cmd
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

	skip      []string        // checks that the plan leaves out
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
	return plan.Scope{Cluster: s.cluster, Set: s.cluster.Spec.Kubernetes.Version, Skip: s.skip}
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
	if s.cluster, err = a.siteConfig(f, own, s.bundle, s.pipeline.Name); err != nil {
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
	if s.graph, err = plan.Build(s.pipeline, s.scope()); err != nil {
		return err
	}
	if err := checkFiles(f, s); err != nil {
		return err
	}
	if err := s.bundled(); err != nil {
		return err
	}
	if s.bundle != nil && slices.Contains([]string{"create", "preflight", "prepare"}, s.graph.Name) {
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
// It is refused where the request, a pipeline, cannot be carried out for it.
func (a *app) siteConfig(f *siteFlags, c *manifest.Cluster, b *bundle.Bundle, request string) (*manifest.Cluster, error) {
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
	return c, refusedBy(request, c, l).In(from).Err()
}

// runSite carries out a pipeline on the hosts, and ends the lines of -o json.
func (a *app) runSite(ctx context.Context, f *siteFlags, p plan.Pipeline) error {
	s := &site{pipeline: p, dryRun: f.dryRun}
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
	if s.bundle != nil && s.graph.Name == "create" {
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
	s.kubeconfig = kubernetes.KubeconfigPath(session.Workdir.Dir)
	if s.removes() {
		return a.remove(ctx, f, s, session)
	}
	if err := a.carryOut(ctx, f, s, session.Run); err != nil || f.dryRun || s.graph.Name != "create" {
		return err
	}
	return a.writeReceipt(f, s, session)
}
