package main

import (
	"cmp"
	"context"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/state"
)

func (a *app) getOperations() *cobra.Command {
	f := &getFlags{}
	cmd := &cobra.Command{
		Use: "operations [-f CONFIG]", Short: "Show what was done to clusters, and what is open", Args: cobra.NoArgs,
		Long: `List the operations on the clusters of --workdir, the oldest first, and last the one that is open: one
that was broken off or failed goes on with the same command. No host is called.

With -f the operations of that one cluster are listed, and its masters are asked too: they know of
those that other machines did, the last 50.`,
		Example: "  kubexm get operations\n  kubexm get operations -f config.yaml -o wide",
		RunE: func(cmd *cobra.Command, _ []string) error {
			views, err := a.operations(cmd.Context(), f)
			if err != nil {
				return err
			}
			l := listing{
				kind: "operation", narrow: 8, values: views, nothing: "nothing was done to a cluster that is known here",
				head: []string{"ID", "CLUSTER", "KIND", "FROM", "TO", "OUTCOME", "SINCE", "TOOK", "WHO", "JOURNAL"},
			}
			for _, v := range views {
				l.rows = append(l.rows, []string{v.ID, v.Cluster, v.Kind, v.From, v.To, cmp.Or(v.Outcome, string(v.State)), v.Since.Format(time.RFC3339), v.Took, v.Who, v.Journal})
			}
			return a.show(l)
		},
	}
	f.add(a, cmd, false, "without it those of all clusters of --workdir are listed")
	return cmd
}

func (a *app) operations(ctx context.Context, f *getFlags) ([]state.OperationView, error) {
	out := []state.OperationView{}
	if f.config != "" {
		c, err := a.loadCluster(f.config, "")
		if err != nil {
			return nil, err
		}
		err = a.onRecords(ctx, f.workdir, c, func(session *installer.Session) error {
			all, err := state.History(ctx, c, session.Workdir.Dir, session.Host)
			if err != nil {
				return err
			}
			open, err := state.Operation(ctx, c, session.Workdir.Dir, session.Host)
			out = append(out, state.OperationViews(c.Metadata.Name, all, open)...)
			return err
		})
		return out, err
	}
	folders, err := installer.Clusters(f.workdir)
	if err != nil {
		return nil, err
	}
	for _, name := range folders {
		views, err := state.OperationsHere(name, filepath.Join(f.workdir, ".kubexm", name))
		if err != nil {
			return nil, err
		}
		out = append(out, views...)
	}
	return out, nil
}
