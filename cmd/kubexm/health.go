package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

func (a *app) healthCommand() *cobra.Command {
	f := &getFlags{}
	cmd := &cobra.Command{
		Use: "health -f CONFIG", Short: "Check whether a cluster is healthy", Args: cobra.NoArgs,
		Long: `Check a cluster, and print one line for each check. All hosts must answer, every API server must be ready, and
every node Ready. etcd must have all its members. No certificate may expire within 30 days. The clocks must agree
with this machine's, and the kubelets' disks must have the free space that a kubelet needs. Problems follow, each
with its host. Nothing is changed.

Exit codes: 0 everything is healthy, 3 a check has found a problem.`,
		Example: "  kubexm health -f config.yaml\n  kubexm health -f config.yaml -o json | jq '.[] | select(.healthy | not)'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			checks, err := a.health(cmd.Context(), f)
			if err != nil {
				return err
			}
			l := listing{kind: "check", narrow: 3, values: checks, head: []string{"CHECK", "STATE", "DETAIL"}}
			var problems []string
			for _, c := range checks {
				state := "healthy"
				if !c.Healthy {
					state = "problem"
				}
				l.rows = append(l.rows, []string{c.Check, state, c.Detail})
				problems = append(problems, c.Problems...)
			}
			if err := a.show(l); err != nil {
				return err
			}
			for _, p := range problems {
				fmt.Fprintf(a.err, "problem: %s\n", p)
			}
			if slices.ContainsFunc(checks, func(c installer.Health) bool { return !c.Healthy }) {
				return &refusal.Error{Kind: refusal.Hosts, Err: errReported}
			}
			return nil
		},
	}
	f.add(a, cmd, true, "")
	return cmd
}

func (a *app) health(ctx context.Context, f *getFlags) (out []installer.Health, err error) {
	c, err := a.loadCluster(f.config, "")
	if err != nil {
		return nil, err
	}
	if err := hasMaster(c); err != nil {
		return nil, err
	}
	session, unreached, err := installer.Reach(ctx, a.readOptions(f.workdir, c))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	return installer.HealthOf(ctx, c, session.Host, unreached, time.Now())
}
