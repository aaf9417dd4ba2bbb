package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/mensylisir/kubexm/cmd/kubexm/console"
)

func (a *app) manCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages",
		Long: `Write one manual page for each command into a folder, for a package to install beside what
"kubexm completion" prints. The same version writes the same bytes: the pages bear the date that
SOURCE_DATE_EPOCH gives, or none that changes.`,
		Example: "  kubexm man build/man1\n  man -l build/man1/kubexm-bundle-build.1",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			date := time.Unix(0, 0)
			if _, ok := a.env("SOURCE_DATE_EPOCH"); ok {
				now, err := a.now()
				if err != nil {
					return err
				}
				date = now
			}
			date = date.UTC()
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // it would bear the day
			indentLists(root)
			header := &doc.GenManHeader{Section: "1", Source: "kubexm " + ownVersion(), Manual: "kubexm", Date: &date}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return err
			}
			pages, err := os.ReadDir(args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.out, "%s: %s\n", args[0], console.Count(len(pages), "page"))
			return err
		},
	}
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return cmd
}

// indentLists keeps the lines of lists in long descriptions apart: two spaces
// before a line say so to a person, four to the page's writer.
func indentLists(cmd *cobra.Command) {
	cmd.Long = strings.ReplaceAll(cmd.Long, "\n  ", "\n    ")
	for _, sub := range cmd.Commands() {
		indentLists(sub)
	}
}
