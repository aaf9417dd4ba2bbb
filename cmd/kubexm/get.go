package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
)

func (a *app) getCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "get", Short: "Show a cluster's nodes, or what was applied to it", Args: cobra.NoArgs}
	cmd.AddCommand(
		a.getPart("nodes", "Show the nodes of a cluster", []string{"table", "wide", "json", "yaml", "name"}, "get", "nodes"),
		a.getPart("cluster", "Show what was applied to a cluster", []string{"yaml", "json", "wide", "name"}, "-n", "kube-system", "get", "configmap/kubexm"),
	)
	return cmd
}

// getPart asks a master with kubectl there: this machine needs none.
func (a *app) getPart(name, short string, formats []string, args ...string) *cobra.Command {
	f := &siteFlags{}
	cmd := &cobra.Command{
		Use: name + " -f CONFIG", Short: short, Args: cobra.NoArgs,
		Example: "  kubexm get " + name + " -f config.yaml\n  kubexm get " + name + " -f config.yaml -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.loadCluster(f.config, "")
			if err != nil {
				return err
			}
			asked := args
			if a.output != "table" {
				asked = append(slices.Clone(args), "-o", a.output)
			}
			return a.onMaster(cmd.Context(), f, c, func(ctx context.Context, h *steps.Host) error {
				out, err := kubectl.Run(ctx, h, asked...)
				if err != nil {
					return err
				}
				a.printed = true
				_, err = fmt.Fprint(a.out, out)
				return err
			})
		},
	}
	cmd.Flags().StringVarP(&f.config, "filename", "f", "", useConfig)
	cmd.Flags().StringVar(&f.workdir, "workdir", ".", useWorkdir)
	_ = cmd.MarkFlagRequired("filename")
	a.outputFlag(cmd, formats...)
	return cmd
}
