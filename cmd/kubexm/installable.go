package main

import (
	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/manifest"
)

// unpinned is what a config resolves to by the matrix alone, with the overlay of a
// file, if any: it knows which add-ons have a manifest. nil where it does not resolve,
// which building tells.
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
	cmd.Flags().StringVar(path, "versions", "", "a file of kind Versions: own versions and digests, laid over the embedded matrix")
	_ = cmd.MarkFlagFilename("versions", "yaml", "yml")
}
