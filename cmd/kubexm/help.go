package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/cmd/kubexm/console"
)

// helpWidth is the maximum width of help texts.
const helpWidth = 80

// narrow folds the paragraphs and flag descriptions of every help to helpWidth. Examples
// are not changed; a test checks their width.
func narrow(root *cobra.Command) {
	root.SetUsageTemplate(strings.NewReplacer(
		".LocalFlags.FlagUsages", ".LocalFlags.FlagUsagesWrapped 80",
		".InheritedFlags.FlagUsages", ".InheritedFlags.FlagUsagesWrapped 80",
	).Replace(root.UsageTemplate()))
	eachCommand(root, func(cmd *cobra.Command) { cmd.Long = console.FoldText(cmd.Long, helpWidth) })
}
