package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/site"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

// buildOnly refuses to build a bundle for a cluster that this version cannot install,
// unless a person says that the bundle is wanted all the same. A config without hosts
// asks for no cluster.
func buildOnly(r *bundle.Resolution, said bool) error {
	if said || len(r.Cluster.Spec.Hosts) == 0 {
		return nil
	}
	ps := site.RefusedBy(pipeline.Create(), r.Cluster, r.Resolved)
	if len(ps) == 0 {
		return nil
	}
	return &refusal.Error{Err: errors.New(r.File + ": " + notInstalled(ps)), Kind: refusal.Usage,
		Advice: "`kubexm config validate -f " + r.File + "` tells more; to build the bundle all the same, add --build-only"}
}

// notInstalled is the one line that ends a look at a config; of one that can be
// installed it says so.
func notInstalled(ps manifest.Problems) string {
	if len(ps) == 0 {
		return "can be installed"
	}
	var fields []string
	for _, p := range ps {
		fields = append(fields, p.Path)
	}
	return "can be built, not installed: " + strings.Join(fields, ", ")
}

// asWarnings gives those of what cannot be installed that no problem tells of, for
// validation: the config can be used to build.
func asWarnings(not, said manifest.Problems) manifest.Problems {
	var out manifest.Problems
	for _, p := range not {
		if p.Path != "spec.hosts" && !slices.ContainsFunc(said, func(s manifest.Problem) bool { return s.Path == p.Path || strings.HasPrefix(s.Path, p.Path+".") }) {
			p.Severity = manifest.Warning
			out = append(out, p)
		}
	}
	return out
}

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
