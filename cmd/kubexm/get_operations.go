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
		Use: "operations [-f CONFIG]", Short: "List the operations on clusters, and the open one", Args: cobra.NoArgs,
		Long: `List the operations on the clusters of --workdir, oldest first. The last one may be open: it failed or
was interrupted, and continues when the same command is run again. No host is contacted.

With -f only that cluster's operations are listed, and they are also read from its masters. These
have the last 50 operations, including those that were run from other machines.`,
		Example: "  kubexm get operations\n  kubexm get operations -f config.yaml -o wide",
		RunE: func(cmd *cobra.Command, _ []string) error {
			views, err := a.operations(cmd.Context(), f)
			if err != nil {
				return err
			}
			l := listing{
				kind: "operation", narrow: 8, values: views, nothing: "no operation is recorded",
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
