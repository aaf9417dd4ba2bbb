package main

import (
	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/manifest"
)

// unpinned resolves a config with the version matrix, and with the overlay file if one
// is given. The lock has no digests but shows which add-ons have a manifest. It returns
// nil if the config does not resolve; a build reports why.
func (a *app) unpinned(overlay string, c *manifest.Cluster) (*manifest.Lock, error) {
	catalog, err := a.loadCatalog(overlay)
	if err != nil {
		return nil, err
	}
	l, problems := catalog.Resolve(c)
	if problems.Err() != nil {
		return nil, nil
	}
	return l, nil
}

func addVersions(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "versions", "", useVersions)
	_ = cmd.MarkFlagFilename("versions", "yaml", "yml")
}
