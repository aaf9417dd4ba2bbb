package main

import "github.com/spf13/cobra"

func (a *app) versionsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "versions", Short: "Show the matrix of versions that go together", Args: cobra.NoArgs}
	return cmd
}
