package main

import (
	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/installer/pipeline"
)

func (a *app) deleteCommand() *cobra.Command {
	f := &siteFlags{}
	cluster := &cobra.Command{
		Use: "cluster -f CONFIG", Short: "Take a cluster away, with everything that came with it", Args: cobra.NoArgs,
		Long: `Drain the nodes, reset them, and remove everything that kubexm brought, in reverse order:
what was there before comes back. All data of the cluster and of its registry is lost.

With --preserve-data etcd's data stays with the keys of its cluster, and so do the images of the
nodes and of the registry; add-ons and nodes stay as they are in that data. The next install takes
it all up, and a delete without the flag removes it. spec.etcd.preserveData does the same.` + skipHelp,
		Example: "  kubexm delete cluster -f config.yaml --yes\n  kubexm delete cluster --bundle demo.tar.zst --key cosign.pub --yes\n  kubexm delete cluster -f config.yaml --preserve-data --yes\n  kubexm delete cluster -f config.yaml --skip-host w2 --yes",
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd, a, pipeline.Delete()) },
	}
	f.add(cluster)
	f.addResume(cluster)
	a.outputFlag(cluster, "text", "json")
	f.addKeep(cluster)
	f.addSkipHost(cluster)
	cmd := &cobra.Command{Use: "delete", Short: "Take a cluster away", Args: cobra.NoArgs}
	cmd.AddCommand(cluster)
	return cmd
}

func (a *app) resetCommand() *cobra.Command {
	f := &siteFlags{}
	cmd := &cobra.Command{
		Use: "reset -f CONFIG", Short: "Clean hosts whose cluster is gone", Args: cobra.NoArgs,
		Long:    "Take Kubernetes and everything that kubexm brought off the hosts of a config, without asking a control plane." + skipHelp,
		Example: "  kubexm reset -f config.yaml --yes\n  kubexm reset -f config.yaml --skip-host w2 --yes",
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd, a, pipeline.Reset()) },
	}
	f.add(cmd)
	f.addResume(cmd)
	a.outputFlag(cmd, "text", "json")
	f.addKeep(cmd)
	f.addSkipHost(cmd)
	return cmd
}
