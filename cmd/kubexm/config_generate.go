package main

import (
	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/manifest/starter"
)

// addMachines adds the flags of config init that list hosts by address.
func addMachines(cmd *cobra.Command, m *starter.Machines) {
	fs := cmd.Flags()
	fs.StringSliceVar(&m.Masters, "masters", nil, "addresses of the masters: 10.0.0.11-13,10.0.1.4; writes a config for these hosts")
	fs.StringSliceVar(&m.Workers, "workers", nil, "addresses of the workers; without workers, masters also run pods")
	fs.StringSliceVar(&m.Registry, "registry", nil, "address of the registry host; without a registry, images are copied to each node")
	fs.StringVar(&m.User, "user", "root", "SSH user of the hosts")
	for _, name := range []string{"masters", "workers", "registry", "user"} {
		cmd.MarkFlagsMutuallyExclusive("template", name)
	}
}
