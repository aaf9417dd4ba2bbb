package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/testdata/lab"
	"github.com/mensylisir/kubexm/testdata/lab/components"
)

func possibleCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "possible",
		Short: "Say whether a lab can go up on this machine; if not, why",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return lab.Possible() },
	}
}

func configCommand() *cobra.Command {
	var f which
	var config string
	cmd := &cobra.Command{
		Use:   "config -f CONFIG",
		Short: "Print a cluster config with a lab's addresses and key filled in",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := f.open()
			if err != nil {
				return err
			}
			raw, err := os.ReadFile(filepath.Clean(config))
			if err != nil {
				return err
			}
			fmt.Fprint(cmd.OutOrStdout(), l.Config(string(raw)))
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&config, "filename", "f", "testdata/configs/lab.yaml", "the cluster config")
	return cmd
}

func smokeCommand() *cobra.Command {
	var f which
	var kubeconfig string
	cmd := &cobra.Command{
		Use:   "smoke --kubeconfig FILE",
		Short: "Run a pod on every worker of a lab's cluster, and have them reach each other in every way",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := f.open()
			if err != nil {
				return err
			}
			cache, err := components.DefaultCache()
			if err != nil {
				return err
			}
			s := lab.Smoke{Lab: l, Cache: cache, Kubeconfig: kubeconfig, Say: func(what string) { fmt.Fprintln(cmd.OutOrStdout(), what) }}
			return s.Run(cmd.Context())
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "how to reach the cluster")
	return cmd
}
