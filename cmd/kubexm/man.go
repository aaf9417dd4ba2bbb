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
		Long: `Write one manual page for each command into a folder, for use in an operating system package. For
shell completion see "kubexm completion". The pages are reproducible: their date is SOURCE_DATE_EPOCH,
or a constant date if it is not set.`,
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
			root.DisableAutoGenTag = true // the tag contains the current date
			indentLists(root)
			header := &doc.GenManHeader{Section: "1", Source: "kubexm " + ownVersion(), Manual: "kubexm", Date: &date}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return err
			}
			pages, err := os.ReadDir(args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.out, "%s: %s\n", args[0], console.FormatCount(len(pages), "page"))
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

// indentLists preserves the lines of lists in long descriptions: the manual page writer
// needs four leading spaces, the help has two.
func indentLists(cmd *cobra.Command) {
	cmd.Long = strings.ReplaceAll(cmd.Long, "\n  ", "\n    ")
	for _, sub := range cmd.Commands() {
		indentLists(sub)
	}
}
