package main

import (
	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/installer/engine"
)

// addRollback adds --rollback, for commands that install from a bundle.
func (f *siteFlags) addRollback(cmd *cobra.Command) {
	modes := []string{string(engine.RollbackStep), string(engine.RollbackTask)}
	f.rollback = modes[0]
	c := &choice{value: &f.rollback, allowed: modes, name: "what"}
	cmd.Flags().Var(c, "rollback", "what is undone on a host when a step fails: "+c.list()+" (also the completed steps of the same task)")
	_ = cmd.RegisterFlagCompletionFunc("rollback", cobra.FixedCompletions(modes, cobra.ShellCompDirectiveNoFileComp))
}
