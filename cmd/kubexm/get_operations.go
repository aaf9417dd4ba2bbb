package main

import (
	"cmp"
	"context"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/steps/cluster"
)

// operationView is what get shows of an operation.
type operationView struct {
	cluster.Ended
	Cluster string `json:"cluster"`
}

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

func (a *app) operations(ctx context.Context, f *getFlags) ([]operationView, error) {
	out := []operationView{}
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
			out = append(out, viewsOf(c.Metadata.Name, all, open)...)
			return err
		})
		return out, err
	}
	folders, err := clusterFolders(f.workdir)
	if err != nil {
		return nil, err
	}
	for _, name := range folders {
		dir := filepath.Join(f.workdir, ".kubexm", name)
		all, err := cluster.HistoryHere(dir)
		if err != nil {
			return nil, err
		}
		open, err := cluster.OperationHere(dir)
		if err != nil {
			return nil, err
		}
		out = append(out, viewsOf(name, all, open)...)
	}
	return out, nil
}

// viewsOf are the operations that have ended, then the one that is open.
func viewsOf(name string, all []cluster.Ended, open *cluster.Operation) []operationView {
	var out []operationView
	for _, e := range all {
		out = append(out, operationView{Ended: e, Cluster: name})
	}
	if open != nil {
		out = append(out, operationView{Ended: cluster.Ended{Operation: *open}, Cluster: name})
	}
	return out
}
