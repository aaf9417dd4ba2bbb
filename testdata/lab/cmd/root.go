package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/testdata/lab"
	"github.com/mensylisir/kubexm/testdata/lab/components"
	"github.com/mensylisir/kubexm/testdata/lab/mirror"
)

func rootCommand() *cobra.Command {
	return &cobra.Command{
		Use:       "root NAME...",
		Short:     "Make root file systems for hosts, where the cache lacks them, and tell where they are",
		Args:      cobra.MatchAll(cobra.MinimumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: lab.AllRoots,
		RunE: func(cmd *cobra.Command, args []string) error {
			cache, err := components.DefaultCache()
			if err != nil {
				return err
			}
			for _, name := range args {
				dir, err := lab.Rootfs(cmd.Context(), cache, name, slog.New(slog.NewTextHandler(os.Stderr, nil)))
				if err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), dir)
			}
			return nil
		},
	}
}

func mirrorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "mirror RELEASE",
		Short: "Bring the packages of a release of Debian that clusters' hosts get, where the cache lacks them",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cache, err := components.DefaultCache()
			if err != nil {
				return err
			}
			return mirror.MakeRelease(cmd.Context(), cache, args[0], os.Stderr)
		},
	}
}
