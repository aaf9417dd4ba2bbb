package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer"
)

// addResume adds --resume, for commands that change hosts.
func (f *siteFlags) addResume(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.resume, "resume", false, "skip the steps that the last run completed, without checking them again")
	cmd.MarkFlagsMutuallyExclusive("resume", "dry-run")
}

// resumed reports which steps a run skips because an earlier run completed them.
func (r *runReport) resumed(x installer.Resumption) {
	if x.Passed > 0 {
		fmt.Fprintf(r.screen, "resumed: %s not checked again; completed according to %s\n", console.FormatCount(x.Passed, "step"), x.Journal)
	}
	if x.Why == "" {
		return
	}
	if x.Passed > 0 {
		fmt.Fprintf(r.screen, "resumed: %s\n", x.Why)
		return
	}
	fmt.Fprintf(r.screen, "not resumed: %s; every step is checked, as without --resume\n", x.Why)
}
