package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

func (a *app) getClusters() *cobra.Command {
	f := &getFlags{}
	cmd := &cobra.Command{
		Use: "clusters [-f CONFIG]", Aliases: []string{"cluster"}, Short: "List clusters and what was applied to them", Args: cobra.NoArgs,
		Long: `List the clusters that have a folder in --workdir, with what was applied to them according to the
cluster record there. No host is contacted.

With -f, read the record of that cluster: from an API server, else from the copies on masters, else
from the workdir. One master that answers is enough.`,
		Example: "  kubexm get clusters\n  kubexm get clusters -f config.yaml -o yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			views, err := a.clusters(cmd.Context(), f)
			if err != nil {
				return err
			}
			l := listing{
				kind: "cluster", narrow: 6, values: views, nothing: "no cluster has a folder below " + filepath.Join(f.workdir, ".kubexm"),
				head: []string{"NAME", "RELEASE", "MASTERS", "HOSTS", "SERIAL", "OPERATION", "LEAD", "REVISION", "BUNDLE"},
			}
			for _, v := range views {
				l.rows = append(l.rows, []string{v.Name, v.Release, strconv.Itoa(v.Masters), strconv.Itoa(v.Hosts), strconv.FormatInt(v.Serial, 10), v.Operation,
					v.Lead, strconv.FormatInt(v.Revision, 10), v.Bundle})
			}
			return a.show(l)
		},
	}
	f.add(a, cmd, false, "without it the clusters of --workdir are listed")
	return cmd
}

// clusters returns the cluster of -f, or all clusters of the workdir.
func (a *app) clusters(ctx context.Context, f *getFlags) ([]state.View, error) {
	if f.config != "" {
		c, err := a.loadCluster(f.config, "")
		if err != nil {
			return nil, err
		}
		v, err := a.queryCluster(ctx, f, c)
		return []state.View{v}, err
	}
	folders, err := installer.Clusters(f.workdir)
	if err != nil {
		return nil, err
	}
	out := []state.View{}
	for _, name := range folders {
		v, err := state.ViewHere(name, filepath.Join(f.workdir, ".kubexm", name))
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// queryCluster reads the cluster record and the open operation from a cluster's masters.
func (a *app) queryCluster(ctx context.Context, f *getFlags, c *manifest.Cluster) (v state.View, err error) {
	err = a.onRecords(ctx, f.workdir, c, func(session *installer.Session) error {
		e, err := state.Exists(ctx, c, session.Workdir.Dir, session.Host)
		if err != nil {
			return err
		}
		open, err := state.Operation(ctx, c, session.Workdir.Dir, session.Host)
		if err != nil {
			return err
		}
		if e == nil && open == nil {
			return &refusal.Error{Err: fmt.Errorf("no record of cluster %s exists, neither on its masters nor in the workdir: it was not created completely", c.Metadata.Name),
				Kind: refusal.Failed, Advice: "create it, or continue: kubexm install ARCHIVE -f " + f.config}
		}
		v, err = state.ViewOf(c.Metadata.Name, e, open)
		return err
	})
	return v, err
}
