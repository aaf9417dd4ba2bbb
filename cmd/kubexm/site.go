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
	cmd := &cobra.Command{Use: "site", Short: "Inspect a site", Args: cobra.NoArgs}
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
		Short: "Write an inventory of a site, to build a delta from",
		Long: `Write an inventory of a site as a small JSON document. Carry it to the host where bundles are built:
"kubexm bundle build --since site.json" builds an archive with only what the site lacks.

The inventory lists the bundles on this machine: those of --bundle, and those that earlier runs used
and that still exist. It also lists the blobs that the site's registry has now, and each host with its
operating system and the versions that it runs. Nothing is changed. The signatures of --bundle are verified, as
install does; the keys may be set in the config.

Keep the listed bundles and the registry until the delta is installed: files are read from the
bundles, and layers from the bundles or the registry. If a host is not reached, nothing is written
and the exit code is 3; --partial writes the inventory anyway. --strict also requires that the
registry and the used bundles can be read.`,
		Example: `  kubexm site inventory -f config.yaml -O site.json
  kubexm site inventory -f config.yaml --key cosign.pub \
    --bundle demo.tar.zst > site.json
  kubexm bundle build -f config.yaml --since site.json    # on the build host`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runInventory(cmd.Context(), f) },
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.config, "filename", "f", "", also(useConfig, "- reads standard input"))
	fs.StringArrayVarP(&f.bundles, "bundle", "b", nil, also(useBundle, "one that stays at the site; may be given several times"))
	fs.StringVarP(&f.workdir, "workdir", "w", ".", useWorkdir)
	fs.StringVarP(&f.to, "out", "O", "", useOut)
	renamed(cmd, "to", "out")
	fs.IntVarP(&f.parallel, "parallel", "p", 16, useParallel+"hosts")
	fs.BoolVar(&f.strict, "strict", false, "fail if a host, the registry or a used bundle cannot be read")
	fs.BoolVar(&f.partial, "partial", false, "write the inventory without unreachable hosts")
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
	c.ResolvePaths(folderOf(f.config))
	policy, err := a.policy(&f.policyFlags, c)
	if err != nil {
		return err
	}
	i, passed, err := installer.Inventory(ctx, a.options(f.workdir, f.parallel, c), f.bundles, policy)
	if err != nil {
		return report.Refused(err)
	}
	missing, unreached := 0, 0
	for _, err := range passed {
		var gone *installer.MissingArchiveError
		if errors.As(err, &gone) {
			fmt.Fprintf(a.err, "note: %v\n", err)
			continue
		}
		missing++
		if host := (*installer.HostError)(nil); errors.As(err, &host) {
			unreached++
		}
		fmt.Fprintf(a.err, "not read: %v\n", err)
		a.printAdvice(err)
	}
	if unreached > 0 && !f.partial {
		fmt.Fprintf(a.err, "error: %s not reached; no inventory was written\n  try   --partial writes it without them\n", console.FormatCount(unreached, "host"))
	}
	if f.strict && missing > 0 || unreached > 0 && !f.partial {
		return &refusal.Error{Kind: refusal.Hosts, Err: errReported}
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
	a.printInventory(i, f.to, len(text))
	return nil
}

// printInventory prints a summary of an inventory, and the next command to type.
func (a *app) printInventory(i *manifest.Inventory, to string, size int) {
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
	fmt.Fprintf(a.err, "  lists %s: %d in %s, %d in the registry (%s); %s\n", console.FormatCount(len(i.Blobs), "blob"), inBundles,
		console.FormatCount(len(i.Bundles), "bundle"), inRegistry, i.Registry.State, console.FormatCount(len(i.Hosts), "host"))
	fmt.Fprintf(a.err, "  next  on the build host: kubexm bundle build -f config.yaml --since %s\n", filepath.Base(to))
}
