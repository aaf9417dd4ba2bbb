package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/cmd/kubexm/console"
)

// helpWidth is how wide a help is at most: half a screen, an old terminal, a mail.
const helpWidth = 80

// narrow has every help fit its width: paragraphs are folded anew, and so are the
// texts of flags. Examples are as they were written; a test holds them.
func narrow(root *cobra.Command) {
	root.SetUsageTemplate(strings.NewReplacer(
		".LocalFlags.FlagUsages", ".LocalFlags.FlagUsagesWrapped 80",
		".InheritedFlags.FlagUsages", ".InheritedFlags.FlagUsagesWrapped 80",
	).Replace(root.UsageTemplate()))
	eachCommand(root, func(cmd *cobra.Command) { cmd.Long = console.FoldText(cmd.Long, helpWidth) })
}
