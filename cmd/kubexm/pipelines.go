package main

import (
	"cmp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
)

// addPipelines adds the command of each pipeline, below its command groups.
func (a *app) addPipelines(root *cobra.Command) {
	for _, p := range pipeline.All() {
		at := root
		for _, word := range p.Command[:len(p.Command)-1] {
			at = group(at, word, p.Group)
		}
		if subcommand(at, p.Command[len(p.Command)-1]) != nil { // it also does something without the pipeline
			continue
		}
		if p.ReadOnly {
			at.AddCommand(a.preflightCommand(p))
			continue
		}
		at.AddCommand(a.pipelineCommand(p))
	}
	group(root, "create", "Create a cluster").AddCommand(a.createClusterCommand())
}

// group returns the command group word below at, and adds it if it does not exist. The
// first non-empty short becomes its short help.
func group(at *cobra.Command, word, short string) *cobra.Command {
	cmd := subcommand(at, word)
	if cmd == nil {
		cmd = &cobra.Command{Use: word, Short: short, Args: cobra.NoArgs}
		at.AddCommand(cmd)
		return cmd
	}
	cmd.Short = cmp.Or(cmd.Short, short)
	return cmd
}

// subcommand returns the command word below at, or nil.
func subcommand(at *cobra.Command, word string) *cobra.Command {
	i := slices.IndexFunc(at.Commands(), func(c *cobra.Command) bool { return c.Name() == word })
	if i < 0 {
		return nil
	}
	return at.Commands()[i]
}

// pipelineCommand returns the command that runs a pipeline on the hosts.
func (a *app) pipelineCommand(p plan.Pipeline) *cobra.Command {
	f := &siteFlags{}
	cmd := &cobra.Command{
		Use: p.Command[len(p.Command)-1] + " -f CONFIG", Args: cobra.NoArgs, Short: p.Short, Long: p.Long, Example: p.Example,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch p.Args {
			case plan.Archive:
				if err := f.takeArchive(cmd, args); err != nil {
					return err
				}
			case plan.HostNames, plan.OneHostName:
				f.targets = args
			case plan.NoArgs:
			}
			if err := f.drain.check(cmd, p.Drains); err != nil {
				return err
			}
			f.given(cmd, p)
			f.keepGiven = cmd.Flags().Changed("preserve-data")
			return a.runSite(cmd.Context(), f, p)
		},
	}
	switch word := p.Command[len(p.Command)-1]; p.Args {
	case plan.NoArgs:
	case plan.Archive:
		cmd.Use, cmd.Args = word+" ARCHIVE [-f CONFIG]", cobra.MaximumNArgs(1)
		completeArchives(cmd)
	case plan.HostNames:
		cmd.Use, cmd.Args = word+" [HOST...] -f CONFIG", cobra.ArbitraryArgs
	case plan.OneHostName:
		cmd.Use, cmd.Args = word+" HOST -f CONFIG", cobra.ExactArgs(1)
	}
	f.add(cmd)
	for _, flag := range p.Flags {
		cmd.Flags().Bool(flag.Name, false, flag.Usage)
	}
	a.outputFlag(cmd, "text", "json")
	f.addMembership(cmd, p)
	if p.Bundle != plan.BundleUnused { // it begins with the preflight checks
		f.addSkip(cmd, "skip-preflight")
		f.addRollback(cmd)
	}
	if p.WritesRecord || p.Deletes || p.Rolling || p.Membership != plan.KeepsHosts {
		f.addResume(cmd)
	}
	if p.Rolling {
		f.batch.add(cmd)
	}
	if p.Drains != plan.NoDrain {
		f.drain.add(cmd, p.Drains)
	}
	if p.WritesRecord || p.Membership == plan.RemovesHosts {
		f.addReceipt(cmd)
	}
	if p.WritesRecord {
		f.addDowngrade(cmd)
	}
	if p.Deletes {
		f.addPreserveData(cmd)
	}
	if p.WritesRecord || p.Deletes {
		f.addSkipHost(cmd)
	}
	return cmd
}

// given sets the flags of a pipeline that are given.
func (f *siteFlags) given(cmd *cobra.Command, p plan.Pipeline) {
	for _, flag := range p.Flags {
		if set, err := cmd.Flags().GetBool(flag.Name); err == nil && set {
			f.flags = append(f.flags, flag.Name)
		}
	}
}

// createClusterCommand returns the command `create cluster`, which does the same as
// install.
func (a *app) createClusterCommand() *cobra.Command {
	p := pipeline.Create()
	p.Command = []string{"create", "cluster"}
	p.Short, p.Long = "Create a cluster; the same as install", ""
	p.Example = "  kubexm create cluster demo.tar.zst -f config.yaml --key cosign.pub"
	return a.pipelineCommand(p)
}
