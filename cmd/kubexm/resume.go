package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer"
)

// addResume adds --resume, for commands that change hosts.
func (f *siteFlags) addResume(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.resume, "resume", false, "pass over, without a look, what the last run saw done")
	cmd.MarkFlagsMutuallyExclusive("resume", "dry-run")
}

// resumed says what a run takes over from the one before.
func (r *runReport) resumed(x installer.Resumption) {
	if x.Passed > 0 {
		fmt.Fprintf(r.screen, "resumed: %s not looked at again, as %s saw them done\n", console.Count(x.Passed, "step"), x.Journal)
	}
	if x.Why == "" {
		return
	}
	if x.Passed > 0 {
		fmt.Fprintf(r.screen, "resumed: %s\n", x.Why)
		return
	}
	fmt.Fprintf(r.screen, "not resumed: %s; every step is looked at, as without --resume\n", x.Why)
}
