package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/installer/pipeline"
)

func (a *app) hostsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "hosts", Short: "Make hosts ready, and give them back", Args: cobra.NoArgs}
	cmd.AddCommand(a.hostsPrepareCommand(), a.hostsRestoreCommand())
	return cmd
}

func (a *app) hostsPrepareCommand() *cobra.Command {
	f := &siteFlags{}
	cmd := &cobra.Command{
		Use: "prepare -f CONFIG", Short: "Make hosts ready for a cluster", Args: cobra.NoArgs,
		Long: `Look at all hosts of a config as preflight does, and make them ready: swap, SELinux and firewall off,
names, packages, time, name servers, kernel modules and settings. install does the same first, and
passes over what is done. docs/hosts.md tells what is changed, and how to leave it as it is.

The packages come from the bundle: it is needed where the config names operating systems.`,
		Example: "  kubexm hosts prepare -f config.yaml --bundle demo.tar.zst \\\n    --key cosign.pub\n  kubexm hosts prepare -f config.yaml --dry-run",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runSite(cmd.Context(), f, pipeline.Prepare()) },
	}
	f.add(cmd)
	f.addSkip(cmd, "skip-preflight")
	a.outputFlag(cmd, "text", "json")
	return cmd
}

func (a *app) hostsRestoreCommand() *cobra.Command {
	f := &siteFlags{}
	cmd := &cobra.Command{
		Use: "restore -f CONFIG", Short: "Give hosts back what they had before", Args: cobra.NoArgs,
		Long: `Undo what "kubexm hosts prepare" did, by what each host has on record: what was there before comes
back. Hosts on which a cluster was made are refused; delete cluster and reset give those back.`,
		Example: "  kubexm hosts restore -f config.yaml --yes\n  kubexm hosts restore -f config.yaml --dry-run",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runSite(cmd.Context(), f, pipeline.Restore()) },
	}
	f.add(cmd)
	a.outputFlag(cmd, "text", "json")
	return cmd
}

// asked tells what a command that takes something away has to be asked for.
func (s *site) asked() error {
	what := " destroys it"
	switch {
	case s.graph.Name == "create" || s.graph.Name == "prepare":
		return nil
	case s.graph.Name == "restore":
		what = " takes away what makes its hosts ready"
	case s.cluster.Spec.Etcd.PreserveData:
		what = " takes it away, and leaves its data"
	}
	return &coded{error: errors.New(s.graph.Name + " of cluster " + s.cluster.Metadata.Name + what), code: exitUsage, advice: "--yes does it; --dry-run says what it would do"}
}

// bundled tells whether a bundle is missing that hosts are to get packages from.
func (s *site) bundled() error {
	if s.bundle != nil || s.graph.Name != "prepare" || len(s.cluster.Spec.Bundle.OperatingSystems) == 0 {
		return nil
	}
	return &coded{error: errors.New("the config names operating systems whose packages the hosts get, and --bundle is not given"), code: exitUsage, advice: "name the bundle"}
}
