package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/report"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/durable"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

func (a *app) siteCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "site", Short: "Tell what a site holds", Args: cobra.NoArgs}
	cmd.AddCommand(a.siteInventory())
	return cmd
}

// inventoryFlags are the flags of `site inventory`.
type inventoryFlags struct {
	policyFlags
	config   string
	bundles  []string
	workdir  string
	to       string
	parallel int
	strict   bool
	partial  bool
}

func (a *app) siteInventory() *cobra.Command {
	f := &inventoryFlags{}
	cmd := &cobra.Command{
		Use:   "inventory -f CONFIG",
		Short: "Write down what a site holds, for a delta that leaves it out",
		Long: `Ask a site what it has, and write it as a small JSON document that is carried out to where
bundles are built: "kubexm bundle build --since site.json" makes an archive of what is lacking.

It lists the bundles that lie on this machine (those that runs here have used and that are still
where they were, and those that --bundle names), what the site's registry really holds now, layer
by layer, and each host with its system and the versions of what runs on it. Nothing is changed.

Of bundles that --bundle names it is asked who made them, as install does; the config may say it.

Before a delta is installed, keep what the inventory lists: files come out of the bundles, layers
out of them or of the registry. A host that is not reached ends the command with exit code 3, and
nothing is written; --partial accepts that. --strict asks for the registry and the bundles on record, too.`,
		Example: `  kubexm site inventory -f config.yaml -O site.json
  kubexm site inventory -f config.yaml --key cosign.pub \
    --bundle demo.tar.zst > site.json
  kubexm bundle build -f config.yaml --since site.json    # on the other side`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runInventory(cmd.Context(), f) },
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.config, "filename", "f", "", also(useConfig, "- reads standard input"))
	fs.StringArrayVarP(&f.bundles, "bundle", "b", nil, also(useBundle, "one that the site keeps; may be given several times"))
	fs.StringVarP(&f.workdir, "workdir", "w", ".", useWorkdir)
	fs.StringVarP(&f.to, "out", "O", "", useOut)
	renamed(cmd, "to", "out")
	fs.IntVarP(&f.parallel, "parallel", "p", 16, useParallel+"hosts")
	fs.BoolVar(&f.strict, "strict", false, "fail when a host, the registry or a bundle on record could not be asked")
	fs.BoolVar(&f.partial, "partial", false, "write the inventory without the hosts that were not reached")
	cmd.MarkFlagsMutuallyExclusive("strict", "partial")
	f.add(cmd)
	_ = cmd.MarkFlagRequired("filename")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml")
	_ = cmd.MarkFlagFilename("bundle", "tar.zst", "001")
	_ = cmd.MarkFlagFilename("out", "json")
	_ = cmd.MarkFlagDirname("workdir")
	return cmd
}

func (a *app) runInventory(ctx context.Context, f *inventoryFlags) error {
	if err := checkArchives("--bundle", f.bundles); err != nil {
		return err
	}
	c, err := a.loadCluster(f.config, "")
	if err != nil {
		return err
	}
	c.PlaceFiles(folderOf(f.config))
	policy, err := a.policy(&f.policyFlags, c)
	if err != nil {
		return err
	}
	i, passed, err := installer.Inventory(ctx, a.options(f.workdir, f.parallel, c), f.bundles, policy)
	if err != nil {
		return report.Refused(err)
	}
	unasked, unreached := 0, 0
	for _, err := range passed {
		var gone *installer.GoneError
		if errors.As(err, &gone) {
			fmt.Fprintf(a.err, "note: %v\n", err)
			continue
		}
		unasked++
		if host := (*installer.HostError)(nil); errors.As(err, &host) {
			unreached++
		}
		fmt.Fprintf(a.err, "not asked: %v\n", err)
		a.printAdvice(err)
	}
	if unreached > 0 && !f.partial {
		fmt.Fprintf(a.err, "error: %s not reached, and no inventory is written\n  try   --partial writes the rest\n", console.Count(unreached, "host"))
	}
	if f.strict && unasked > 0 || unreached > 0 && !f.partial {
		return &refusal.Error{Kind: refusal.Hosts, Err: errSaid}
	}
	text, err := manifest.EncodeInventory(i)
	if err != nil {
		return err
	}
	if f.to == "" {
		_, err = a.out.Write(text)
		return err
	}
	if err := durable.WriteFile(f.to, text, 0o644); err != nil {
		return err
	}
	a.sayInventory(i, f.to, len(text))
	return nil
}

// sayInventory closes an inventory: what it lists, and the next command to type.
func (a *app) sayInventory(i *manifest.Inventory, to string, size int) {
	var inBundles, inRegistry int
	for _, where := range i.Blobs {
		if where.Bundle() {
			inBundles++
		}
		if where.Registry() {
			inRegistry++
		}
	}
	fmt.Fprintf(a.err, "%s: %s, cluster %s\n", to, bundle.Bytes(int64(size)), i.Cluster)
	fmt.Fprintf(a.err, "  holds %s: %d in %s, %d in the registry (%s); %s\n", console.Count(len(i.Blobs), "blob"), inBundles,
		console.Count(len(i.Bundles), "bundle"), inRegistry, i.Registry.State, console.Count(len(i.Hosts), "host"))
	fmt.Fprintf(a.err, "  next  carry it out, and there: kubexm bundle build -f config.yaml --since %s\n", filepath.Base(to))
}
