package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

func (a *app) operationCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "operation", Short: "Show the operation that is open on a cluster, or give it up", Args: cobra.NoArgs}
	cmd.AddCommand(a.operationShow(), a.operationAbandon())
	return cmd
}

func (a *app) operationShow() *cobra.Command {
	f := &getFlags{}
	cmd := &cobra.Command{
		Use: "show -f CONFIG", Short: "Show the operation that is open on a cluster", Args: cobra.NoArgs,
		Long: `Ask the masters of a cluster which operation is open: a change that has begun and not ended. The same
command goes on with it. Until it has ended, no other kind of change begins.`,
		Example: "  kubexm operation show -f config.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.loadCluster(f.config, "")
			if err != nil {
				return err
			}
			return a.onRecords(cmd.Context(), f.workdir, c, func(session *installer.Session) error {
				open, err := state.Operation(cmd.Context(), c, session.Workdir.Dir, session.Host)
				if err != nil {
					return err
				}
				l := listing{kind: "operation", narrow: 6, values: state.OperationViews(c.Metadata.Name, nil, open), nothing: "no operation is open on cluster " + c.Metadata.Name,
					head: []string{"ID", "KIND", "FROM", "TO", "STATE", "SINCE", "WHO"}}
				if open != nil {
					l.rows = [][]string{{open.ID, open.Kind, open.From, open.To, string(open.State), open.Since.Format(time.RFC3339), open.Who}}
				}
				return a.show(l)
			})
		},
	}
	f.add(a, cmd, true, "")
	return cmd
}

func (a *app) operationAbandon() *cobra.Command {
	var config, workdir string
	var yes bool
	cmd := &cobra.Command{
		Use: "abandon -f CONFIG --yes", Short: "Give up the operation that is open on a cluster", Args: cobra.NoArgs,
		Long: `Say of the operation that is open on a cluster that nobody goes on with it, so that another kind of
change may begin. Nothing is undone: the cluster stays as the operation left it.`,
		Example: "  kubexm operation abandon -f config.yaml --yes",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.loadCluster(config, "")
			if err != nil {
				return err
			}
			return a.onMasters(cmd.Context(), workdir, c, func(session *installer.Session) error {
				return a.abandon(cmd.Context(), session, yes)
			})
		},
	}
	cmd.Flags().StringVarP(&config, "filename", "f", "", useConfig)
	cmd.Flags().StringVar(&workdir, "workdir", ".", useWorkdir)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do it without asking")
	_ = cmd.MarkFlagRequired("filename")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml")
	return cmd
}

// abandon gives up what is open on the cluster of a session.
func (a *app) abandon(ctx context.Context, session *installer.Session, yes bool) error {
	name := session.Cluster.Metadata.Name
	if len(session.Reached()) == 0 {
		return &refusal.Error{Err: fmt.Errorf("no master of cluster %s is reached, and what is open on it is written there", name), Kind: refusal.Hosts, Advice: "bring one back; without any, nothing goes on"}
	}
	if !yes {
		return &refusal.Error{Err: fmt.Errorf("operation of cluster %s is given up for good", name), Kind: refusal.Usage, Advice: "--yes does it; kubexm operation show says what is open"}
	}
	open, err := session.Abandon(ctx)
	if err != nil {
		return err
	}
	if open == nil {
		_, err = fmt.Fprintf(a.out, "no operation is open on cluster %s\n", name)
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s %s of cluster %s, of %s, is abandoned; nothing was undone\n", open.Kind, open.ID, name, open.Who)
	return err
}
