package main

import "github.com/spf13/cobra"

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Write, check and explain cluster configs", Args: cobra.NoArgs}
	return cmd
}
