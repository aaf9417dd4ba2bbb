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
	i := slices.IndexFunc(at.Commands(), func(c *cobra.Command) bool { return c.Name() == word })
	if i < 0 {
		cmd := &cobra.Command{Use: word, Short: short, Args: cobra.NoArgs}
		at.AddCommand(cmd)
		return cmd
	}
	cmd := at.Commands()[i]
	cmd.Short = cmp.Or(cmd.Short, short)
	return cmd
}

// pipelineCommand returns the command that runs a pipeline on the hosts.
func (a *app) pipelineCommand(p plan.Pipeline) *cobra.Command {
	f := &siteFlags{}
	cmd := &cobra.Command{
		Use: p.Command[len(p.Command)-1] + " -f CONFIG", Args: cobra.NoArgs, Short: p.Short, Long: p.Long, Example: p.Example,
		RunE: func(cmd *cobra.Command, args []string) error {
			if p.Args == plan.Archive {
				if err := f.takeArchive(cmd, args); err != nil {
					return err
				}
			}
			f.keepGiven = cmd.Flags().Changed("preserve-data")
			return a.runSite(cmd.Context(), f, p)
		},
	}
	if p.Args == plan.Archive {
		cmd.Use, cmd.Args = p.Command[len(p.Command)-1]+" ARCHIVE [-f CONFIG]", cobra.MaximumNArgs(1)
		completeArchives(cmd)
	}
	f.add(cmd)
	a.outputFlag(cmd, "text", "json")
	if p.Bundle != plan.BundleUnused { // it begins with the preflight checks
		f.addSkip(cmd, "skip-preflight")
		f.addRollback(cmd)
	}
	if p.WritesRecord || p.Deletes || p.Rolling {
		f.addResume(cmd)
	}
	if p.Rolling {
		f.batch.add(cmd)
	}
	if p.WritesRecord {
		f.addReceipt(cmd)
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

// createClusterCommand returns the command `create cluster`, which does the same as
// install.
func (a *app) createClusterCommand() *cobra.Command {
	p := pipeline.Create()
	p.Command = []string{"create", "cluster"}
	p.Short, p.Long = "Create a cluster; the same as install", ""
	p.Example = "  kubexm create cluster demo.tar.zst -f config.yaml --key cosign.pub"
	return a.pipelineCommand(p)
}
