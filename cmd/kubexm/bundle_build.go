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
	signing signFlags // of which --key is called --sign-key here
	locked  bool
	dryRun  bool
	force   bool
	since   string
	only    bool // the bundle may be one that cannot be installed
}

func (a *app) bundleBuild() *cobra.Command {
	f := &buildFlags{}
	cmd := &cobra.Command{
		Use:   "build -f CONFIG [ARCHIVE]",
		Short: "Turn a cluster config into one archive",
		Long: `Resolve a config, pin it in kubexm.lock (or use the lock that stands), fetch every
artifact, check each against its digest, and write one archive. The default name is
CLUSTER-SERIAL.tar.zst in the current folder.

The same lock gives the same bytes, whatever the cache holds and however much runs at
once. Stop it at any time: run again, it goes on with what was fetched.

Logins of registries are docker's ("docker login", or the file spec.sources.dockerConfig).
Those of chart repositories are Helm's ("helm repo add --username"), else docker's for
the host; each goes to its own host and port alone, whatever that redirects to.

KMZONE=cn in the environment is spec.sources.zone: cn, where no zone is written.

With --since the archive is a delta: it leaves out every file and layer that the site has, as
"kubexm site inventory" wrote it down, and does not fetch them. Its root is the whole bundle's, so
one signature is good for both; at the site it is used as a whole one is.

A config that asks for what this version cannot install is refused: "kubexm config validate"
names the fields. --build-only builds its bundle all the same.

Exit codes: 0 done, 1 failed, 2 mistakes in the config or flags, 4 something fetched is
not what the lock says, 130 interrupted.`,
		Example: `  kubexm bundle build -f config.yaml
  kubexm bundle build -f config.yaml site.tar.zst
  kubexm bundle build -f config.yaml --locked ci.tar.zst    # refuse drift
  kubexm bundle build -f config.yaml --dry-run      # what would be fetched
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
	cmd.Flags().BoolVar(&f.locked, "locked", false, "refuse to build when the lock does not answer the config exactly")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, also(useDryRun, "nobody is asked"))
	cmd.Flags().BoolVar(&f.force, "force", false, useForce)
	cmd.Flags().StringVar(&f.since, "since", "", "only what is newer than this: the inventory of a site; builds a delta")
	cmd.Flags().BoolVar(&f.only, "build-only", false, "build also for a config that this version cannot install")
	_ = cmd.MarkFlagFilename("since", "json")
	a.outputFlag(cmd, "text", "json")
	return cmd
}

func (a *app) runBuild(ctx context.Context, f *buildFlags, output string) error {
	if f.parity != 0 && f.size == 0 {
		return &refusal.Error{Err: errors.New("--parity without --volume-size"), Kind: refusal.Usage, Advice: "parity mends volumes: say how large they are to be"}
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
	if err := site.BuildOnly(r); err != nil && !f.only {
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
	c *fetch.Client, p *console.Progress, output string, signer *sign.Signer) (*bundle.Built, error) {
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
		Planned: func(plan bundle.Plan) { p.Total(plan) },
	})
	return built, report.Refused(err)
}

// inventory reads what --since names; nil without it.
func (f *buildFlags) refuseArchive(path string) error {
	if f.size > 0 {
		path += bundle.FirstVolume
	}
	return refuseExisting(path, f.force)
}

func (a *app) inventory(path string, l *manifest.Lock) (*manifest.Inventory, error) {
	if path == "" {
		return nil, nil
	}
	r, closing, err := a.openInput(path)
	if err != nil {
		return nil, &refusal.Error{Err: err, Kind: refusal.Usage, Advice: "name what `kubexm site inventory` wrote at the site"}
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

// printBuilt closes a build: what stands where, and the next command to type.
func (a *app) printBuilt(b *bundle.Built, l *manifest.Lock, signer *sign.Signer, key string) error {
	if a.structured() {
		return a.printValue(struct {
			*bundle.Built
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
		fmt.Fprintf(a.out, "  in    %s; carry %s too, on each disk\n", console.Count(b.Volumes, "volume"), trimVolume(b.Path)+".volumes")
	}
	if d := b.Delta; d != nil {
		fmt.Fprintf(a.out, "  delta %s, %s of %s; the site holds the rest\n", console.Count(d.Blobs, "blob"), bundle.Bytes(d.Bytes), bundle.Bytes(d.AllBytes))
	}
	verify := "--allow-unsigned"
	if signer != nil {
		fmt.Fprintf(a.out, "  by    key %s\n", signer.KeyID())
		verify = publicKeyFlag(key)
	}
	fmt.Fprintf(a.out, "  root  %s\n  next  kubexm bundle verify %s %s\n", b.Root, verify, report.CommandLine(b.Path))
	return nil
}

// printPlan lists what the lock and the config ask for. A size that nobody has
// asked for yet is a question mark.
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
		fmt.Fprintf(a.out, "%s is current: nothing has to be pinned\n", r.Path)
	} else {
		fmt.Fprintf(a.out, "%s would change:%s\n", r.Path, bundle.ListChanges(r.Changes, 20))
	}
	return nil
}
