package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/durable"
)

// membershipFlags are the flags of commands that change which hosts are part of a cluster.
type membershipFlags struct {
	dead      bool // the named hosts do not answer
	allowEven bool // accept an even number of etcd members
	write     bool // edit the config
}

// addMembership adds the flags of a pipeline that changes the hosts of a cluster.
func (f *siteFlags) addMembership(cmd *cobra.Command, p plan.Pipeline) {
	switch p.Membership {
	case plan.AddsHosts:
		cmd.Flags().BoolVar(&f.allowEven, "allow-even", false, "accept an even number of etcd members, which tolerates no more failures than one member less")
	case plan.RemovesHosts:
		cmd.Use, cmd.Args = strings.Replace(cmd.Use, "[HOST...]", "HOST [HOST...]", 1), cobra.MinimumNArgs(1)
		cmd.Flags().BoolVar(&f.dead, "dead", false, "the hosts do not answer and never will: kubexm does not connect to them")
		cmd.Flags().BoolVar(&f.write, "write", false, "remove the hosts from the config of -f as well; its comments stay")
	case plan.KeepsHosts:
	}
}

// reportNothing reports that the config has no host that could join.
func (a *app) reportNothing(s *siteRun) error {
	if a.lines != nil {
		return nil
	}
	_, err := fmt.Fprintf(a.out, "%s: every host of the config is part of the cluster; nothing was done\n", s.Cluster.Metadata.Name)
	return err
}

// beforeMembership reports which differences of the config are not applied, and updates the copy
// of the cluster record on this machine.
func (a *app) beforeMembership(ctx context.Context, s *siteRun) error {
	if s.Change == nil {
		return nil
	}
	if ignored := s.IgnoredChanges(); ignored != "" {
		fmt.Fprintf(a.screen, "note: the config also differs in %s; this command does not apply that\n", ignored)
	}
	if s.Pipeline.WritesRecord || s.DryRun {
		return nil
	}
	return a.adopt(ctx, s.Session)
}

// reportDeparted reports what the user has to do after hosts have left the cluster, and edits the
// config if that was requested.
func (a *app) reportDeparted(f *siteFlags, s *siteRun) error {
	if f.dryRun {
		return nil
	}
	a.reportLeft(s.RemainingOnDead(), s.Change.Before, "")
	if err := a.writeReceipt(f, s); err != nil {
		return err
	}
	if f.config == "" || f.config == "-" {
		return nil
	}
	text, err := os.ReadFile(f.config)
	if err != nil {
		return err
	}
	listed, err := manifest.ListedHosts(text, s.Change.Targets)
	if err != nil || len(listed) == 0 {
		return err
	}
	names := strings.Join(listed, ", ")
	if !f.write {
		if a.lines == nil {
			_, err = fmt.Fprintf(a.out, "  next  remove %s from spec.hosts and spec.roleGroups in %s, or add --write next time\n", names, f.config)
		}
		return err
	}
	if text, err = manifest.RemoveHosts(text, listed); err != nil {
		return fmt.Errorf("%s: %w", f.config, err)
	}
	if err := durable.WriteFile(f.config, text, 0o644); err != nil {
		return err
	}
	if a.lines == nil {
		_, err = fmt.Fprintf(a.out, "  wrote  %s without %s\n", f.config, names)
	}
	return err
}
