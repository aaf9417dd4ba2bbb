package main

import "github.com/spf13/cobra"

func (a *app) bundleCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "bundle", Short: "Build, check and open bundles", Args: cobra.NoArgs}
	return cmd
}
