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
	cmd := &cobra.Command{Use: "operation", Short: "Show or abandon the open operation of a cluster", Args: cobra.NoArgs}
	cmd.AddCommand(a.operationShow(), a.operationAbandon())
	return cmd
}

func (a *app) operationShow() *cobra.Command {
	f := &getFlags{}
	cmd := &cobra.Command{
		Use: "show -f CONFIG", Short: "Show the open operation of a cluster", Args: cobra.NoArgs,
		Long: `Read from the masters which operation is open: a change that was started and not completed. Run the
same command again to continue it. Until it is completed, no other kind of operation can start.`,
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
		Use: "abandon -f CONFIG --yes", Short: "Abandon the open operation of a cluster", Args: cobra.NoArgs,
		Long: `Mark the open operation of a cluster as abandoned, so that another kind of operation can start.
Nothing is undone: the cluster stays in the state in which the operation left it.`,
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
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, useYes)
	_ = cmd.MarkFlagRequired("filename")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml")
	return cmd
}

// abandon abandons the open operation of a session's cluster.
func (a *app) abandon(ctx context.Context, session *installer.Session, yes bool) error {
	name := session.Cluster.Metadata.Name
	if len(session.Reached()) == 0 {
		return &refusal.Error{Err: fmt.Errorf("no master of cluster %s can be reached; the open operation is recorded there", name), Kind: refusal.Hosts, Advice: "make at least one master reachable"}
	}
	if !yes {
		return &refusal.Error{Err: fmt.Errorf("abandoning the operation of cluster %s needs a confirmation", name), Kind: refusal.Usage, Advice: "add --yes to confirm; kubexm operation show prints the open operation"}
	}
	open, err := session.Abandon(ctx)
	if err != nil {
		return err
	}
	if open == nil {
		_, err = fmt.Fprintf(a.out, "no operation is open on cluster %s\n", name)
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s %s of cluster %s, started by %s, was abandoned; nothing was undone\n", open.Kind, open.ID, name, open.Who)
	return err
}
