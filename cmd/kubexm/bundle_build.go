package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/delta"
	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/bundle/sign"
	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer/report"
	"github.com/mensylisir/kubexm/installer/site"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

type buildFlags struct {
	sourceFlags
	volumeFlags
	signing signFlags // its --key is called --sign-key in this command
	locked  bool
	dryRun  bool
	force   bool
	keep    bool // a copy of everything in the cache
	since   string
	only    bool // also build bundles that this version cannot install
}

func (a *app) bundleBuild() *cobra.Command {
	f := &buildFlags{}
	cmd := &cobra.Command{
		Use:   "build -f CONFIG [ARCHIVE]",
		Short: "Build one archive from a cluster config",
		Long: `Resolve a config, pin its artifacts in kubexm.lock (or use the existing lock file), download
every artifact, verify each digest, and write one archive. The default name is
CLUSTER-SERIAL.tar.zst in the current folder.

Builds are reproducible: the same lock file gives the same bytes, whatever the cache contains.
The command can be interrupted at any time. What was downloaded is in ARCHIVE.partial; run again, it
continues there. Blobs that a bundle of an earlier build contains are read from it, if the bundle is
still where it was written.

Registry credentials come from docker's config ("docker login", or spec.sources.dockerConfig).
Credentials of chart repositories come from Helm ("helm repo add --username"), else from
docker's config. They are sent only to their own host and port, never to a redirect's target.

If the config sets no zone, KMZONE=cn in the environment means spec.sources.zone: cn.

With --since the archive is a delta. It leaves out every file and layer that the site already
has, as listed by "kubexm site inventory"; these are not downloaded. The delta has the same root
as the complete bundle, so one signature is valid for both. At the site it is used in the same way.

A config with fields that this version cannot install is refused; "kubexm config validate" lists
them. --build-only builds the bundle anyway.

Exit codes: 0 success, 1 failure, 2 error in the config or flags, 4 downloaded content differs
from the lock file, 130 interrupted.`,
		Example: `  kubexm bundle build -f config.yaml
  kubexm bundle build -f config.yaml site.tar.zst
  kubexm bundle build -f config.yaml --locked ci.tar.zst # keep kubexm.lock
  kubexm bundle build -f config.yaml --dry-run      # list the artifacts
  kubexm bundle build -f config.yaml --sign-key cosign.key signed.tar.zst
  kubexm bundle build -f config.yaml --sources mirrors.yaml mirrored.tar.zst
  kubexm bundle build -f config.yaml --since site.json    # what the site lacks
  kubexm bundle build -f config.yaml --volume-size 4GiB --parity 1 disks.tar.zst`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			output := ""
			if len(args) == 1 {
				output = args[0]
			}
			return a.runBuild(cmd.Context(), f, output)
		},
	}
	f.sourceFlags.add(cmd)
	f.volumeFlags.add(cmd)
	cmd.Flags().StringVar(&f.signing.key, "sign-key", "", also(useSignKey, "see kubexm bundle sign"))
	f.signing.addMinimum(cmd)
	f.signing.passwordFlags.add(cmd)
	_ = cmd.MarkFlagFilename("sign-key", "key", "pem")
	cmd.Flags().BoolVar(&f.locked, "locked", false, "fail if the lock file would change")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, also(useDryRun, "no network access"))
	cmd.Flags().BoolVar(&f.force, "force", false, useForce)
	cmd.Flags().BoolVar(&f.keep, "keep-cache", false, useKeepCache)
	cmd.Flags().StringVar(&f.since, "since", "", "only what is newer than this: a site's inventory file; builds a delta")
	cmd.Flags().BoolVar(&f.only, "build-only", false, "also build from a config that this version cannot install")
	_ = cmd.MarkFlagFilename("since", "json")
	a.outputFlag(cmd, "text", "json")
	return cmd
}

func (a *app) runBuild(ctx context.Context, f *buildFlags, output string) error {
	if f.parity != 0 && f.size == 0 {
		return &refusal.Error{Err: errors.New("--parity without --volume-size"), Kind: refusal.Usage, Advice: "parity repairs volumes: set their size with --volume-size"}
	}
	if err := f.check(); err != nil {
		return err
	}
	if output != "" && !f.dryRun { // before anything is fetched
		if err := f.refuseArchive(output); err != nil {
			return err
		}
	}
	r, err := a.resolve(&f.sourceFlags)
	if err != nil {
		return err
	}
	if err := r.Drift(); f.locked && err != nil {
		return err
	}
	if err := site.CheckBuildable(r); err != nil && !f.only {
		return err
	}
	inventory, err := a.inventory(f.since, r.Lock)
	if err != nil {
		return err
	}
	if f.dryRun {
		return a.printPlan(r)
	}
	var signer *sign.Signer // opened before anything is fetched
	if f.signing.key != "" {
		if signer, err = a.signer(ctx, f.signing.key, &f.signing.passwordFlags); err != nil {
			return err
		}
	}
	if _, err := sign.ClaimOf(r.Lock, f.signing.minimum); err != nil {
		return err
	}
	cache, release, err := a.heldCache(ctx, &f.sourceFlags)
	if err != nil {
		return err
	}
	defer release()
	p := a.progress(a.output != "text")
	defer p.Stop()
	c, err := a.client(&f.sourceFlags, cache, r.Cluster, p)
	if err != nil {
		return err
	}
	lock := r.Previous
	if !r.Current() {
		p.Phase("pin")
		if lock, err = a.pin(ctx, r, c, f.parallel); err != nil {
			return err
		}
	}
	if output == "" {
		output = fmt.Sprintf("%s-%d.tar.zst", lock.Cluster, lock.Serial)
		if inventory != nil {
			output = fmt.Sprintf("%s-%d-delta.tar.zst", lock.Cluster, lock.Serial)
		}
	}
	if err := f.refuseArchive(output); err != nil {
		return err
	}
	built, err := a.build(ctx, f, r, lock, inventory, cache, c, p, output, signer)
	p.Stop()
	if err != nil {
		return err
	}
	if signer != nil && built.Volumes == 0 {
		if err := signer.WriteDetached(built.Path); err != nil {
			return err
		}
	}
	return a.printBuilt(built, lock, signer, f.signing.key)
}

func (a *app) build(ctx context.Context, f *buildFlags, r *bundle.Resolution, lock *manifest.Lock, inventory *manifest.Inventory, cache *fetch.Cache,
	c *fetch.Client, p *console.Progress, output string, signer *sign.Signer) (*bundle.BuildResult, error) {
	p.Phase("build")
	var lines func(digest.Digest) ([][]byte, error)
	if signer != nil {
		lines = func(root digest.Digest) ([][]byte, error) {
			claim, err := sign.ClaimOf(lock, f.signing.minimum)
			if err != nil {
				return nil, err
			}
			return a.maker(signer).Lines(root, lock, claim)
		}
	}
	built, err := bundle.Build(ctx, bundle.BuildRequest{
		Lock: lock, Config: r.Config, Output: output, Cache: cache, Fetcher: c, Parallel: f.parallel,
		Volumes: f.options(), Since: inventory, Sign: lines,
		Planned: func(plan bundle.Plan) { p.Total(plan) }, KeepCache: f.keep, Log: a.log,
	})
	return built, report.Refused(err)
}

// refuseArchive returns an error if the archive at path, or its first volume, exists
// and --force is not given.
func (f *buildFlags) refuseArchive(path string) error {
	if f.size > 0 {
		path += bundle.FirstVolume
	}
	return refuseExisting(path, f.force)
}

// inventory reads the site inventory at path; nil if path is empty. It returns an error
// if the inventory is of another cluster than the lock.
func (a *app) inventory(path string, l *manifest.Lock) (*manifest.Inventory, error) {
	if path == "" {
		return nil, nil
	}
	r, closing, err := a.openInput(path)
	if err != nil {
		return nil, &refusal.Error{Err: err, Kind: refusal.Usage, Advice: "specify the file that `kubexm site inventory` wrote at the site"}
	}
	defer closing()
	i, problems := manifest.DecodeInventory(r)
	if err := problems.In(path).Err(); err != nil {
		return nil, err
	}
	if i.Cluster != l.Cluster {
		return nil, report.Refused(&delta.ClusterError{Inventory: i.Cluster, Lock: l.Cluster})
	}
	return i, nil
}

// printBuilt prints what was built, and the next command to type.
func (a *app) printBuilt(b *bundle.BuildResult, l *manifest.Lock, signer *sign.Signer, key string) error {
	if a.structured() {
		return a.printValue(struct {
			*bundle.BuildResult
			Summary bundle.Summary `json:"summary"`
		}{b, bundle.Summarize(l)})
	}
	s := bundle.Summarize(l)
	var sets []string
	for _, x := range l.Sets {
		sets = append(sets, x.Name)
	}
	fmt.Fprintf(a.out, "%s: %s, Kubernetes %s, %d files%s, %d images, serial %d\n", b.Path, bundle.Bytes(b.Bytes),
		strings.Join(sets, ", "), s.Files, packagesText(s, false), s.Images, s.Serial)
	if b.Volumes > 0 {
		fmt.Fprintf(a.out, "  in    %s; carry a copy of %s on each disk\n", console.FormatCount(b.Volumes, "volume"), trimVolume(b.Path)+".volumes")
	}
	if d := b.Delta; d != nil {
		fmt.Fprintf(a.out, "  delta %s, %s of %s; the site has the rest\n", console.FormatCount(d.Blobs, "blob"), bundle.Bytes(d.Bytes), bundle.Bytes(d.AllBytes))
	}
	verify := "--allow-unsigned"
	if signer != nil {
		fmt.Fprintf(a.out, "  by    key %s\n", signer.KeyID())
		verify = publicKeyFlag(key)
	}
	fmt.Fprintf(a.out, "  root  %s\n  next  kubexm bundle verify %s %s\n", b.Root, verify, report.CommandLine(b.Path))
	return nil
}

// printPlan lists the artifacts of the lock and the config. A size that is not pinned
// yet is printed as a question mark.
func (a *app) printPlan(r *bundle.Resolution) error {
	rows := bundle.Rows(r.Lock)
	if a.structured() {
		return a.printValue(struct {
			Lock    string          `json:"lock"`
			Changes []bundle.Change `json:"changes"`
			Rows    []bundle.Row    `json:"artifacts"`
		}{r.Path, r.Changes, rows})
	}
	if err := a.printRows(rows, false); err != nil {
		return err
	}
	if r.Current() {
		fmt.Fprintf(a.out, "%s is up to date: nothing has to be pinned\n", r.Path)
	} else {
		fmt.Fprintf(a.out, "%s would change:%s\n", r.Path, bundle.ListChanges(r.Changes, 20))
	}
	return nil
}
