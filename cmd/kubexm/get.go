package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/kubeadm"
)

func (a *app) getCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "get", Short: "Show a cluster's nodes, or what was applied to it", Args: cobra.NoArgs}
	cmd.AddCommand(
		a.getPart("nodes", "Show the nodes of a cluster", "get", "nodes", "-o", "wide"),
		a.getPart("cluster", "Show what was applied to a cluster", "-n", "kube-system", "get", "configmap", "kubexm", "-o", "yaml"),
	)
	return cmd
}

// getPart asks the first master with kubectl there: this machine needs none.
func (a *app) getPart(name, short string, args ...string) *cobra.Command {
	f := &siteFlags{}
	cmd := &cobra.Command{
		Use: name + " -f CONFIG", Short: short, Args: cobra.NoArgs,
		Example: "  kubexm get " + name + " -f config.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.loadCluster(f.config, "")
			if err != nil {
				return err
			}
			return a.askMaster(cmd.Context(), f, c, args)
		},
	}
	cmd.Flags().StringVarP(&f.config, "filename", "f", "", useConfig)
	cmd.Flags().StringVar(&f.workdir, "workdir", ".", useWorkdir)
	_ = cmd.MarkFlagRequired("filename")
	return cmd
}

func (a *app) askMaster(ctx context.Context, f *siteFlags, c *manifest.Cluster, args []string) error {
	masters := c.HostsWith(manifest.RoleMaster)
	if len(masters) == 0 {
		return &coded{error: errors.New("the config has no master"), code: exitUsage}
	}
	only := *c
	only.Spec.Hosts = masters[:1]
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/root"
	}
	session, err := installer.Open(ctx, installer.Options{Cluster: &only, Base: f.workdir, Log: slog.New(slog.DiscardHandler), LookupEnv: a.env, Home: home, Parallel: 1, Version: ownVersion()})
	if err != nil {
		return err
	}
	defer session.Close()
	h := session.Host(masters[0])
	if _, err := h.Stat(ctx, kubeadm.AdminConf); errors.Is(err, fs.ErrNotExist) {
		return &coded{error: fmt.Errorf("there is no cluster on %s", h.Name), code: exitFailed, advice: "make it: kubexm install --bundle …"}
	}
	out, err := kubeadm.Kubectl(ctx, h, args...)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(a.out, out)
	return err
}
