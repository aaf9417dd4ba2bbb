package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
)

// refusedBy names what a config asks for and a pipeline cannot carry out: better before
// the first host is reached than half way. l is the lock of the bundle, which knows the
// manifests of add-ons; nil where there is none. What brings nothing takes away what was
// installed, whatever else the config asks for.
func refusedBy(p plan.Pipeline, c *manifest.Cluster, l *manifest.Lock) manifest.Problems {
	if p.Refuses != nil {
		if ps := p.Refuses(c); len(ps) > 0 {
			return ps
		}
	}
	if p.Bundle == plan.BundleUnused && len(c.Spec.Hosts) > 0 {
		return c.NotSupported()
	}
	ps := c.NotInstallable()
	if l != nil && len(c.Spec.Hosts) > 0 {
		ps = append(ps, addonsWithout(c, l)...)
	}
	return ps
}

// buildOnly refuses to build a bundle for a cluster that this version cannot install,
// unless a person says that the bundle is wanted all the same. A config without hosts
// asks for no cluster.
func buildOnly(r *resolution, said bool) error {
	if said || len(r.cluster.Spec.Hosts) == 0 {
		return nil
	}
	ps := refusedBy(pipeline.Create(), r.cluster, r.resolved)
	if len(ps) == 0 {
		return nil
	}
	return &coded{error: errors.New(r.file + ": " + notInstalled(ps)), code: exitUsage,
		advice: "`kubexm config validate -f " + r.file + "` tells more; to build the bundle all the same, add --build-only"}
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

// carriedOnly warns of add-ons where a bundle is made: it can carry their images, and
// on the site nothing can be fetched any more.
func carriedOnly(c *manifest.Cluster, l *manifest.Lock) manifest.Problems {
	ps := addonsWithout(c, l)
	for i := range ps {
		ps[i].Severity = manifest.Warning
		ps[i].Message += "; its images are carried"
	}
	return ps
}

// addonsWithout names the add-ons whose manifest l does not hold: the version
// matrix knows of some their images alone.
func addonsWithout(c *manifest.Cluster, l *manifest.Lock) manifest.Problems {
	var ps manifest.Problems
	for i, a := range c.Spec.Addons {
		need := manifest.Need{Kind: manifest.File, Name: a.Name, Set: c.Spec.Kubernetes.Version}
		if _, err := l.File(need, manifest.Platform{}); a.Source != "" || err == nil && a.Form() != manifest.Chart {
			continue
		}
		p := manifest.Problem{
			Path: fmt.Sprintf("spec.addons[%d]", i), Message: a.Name + " cannot be installed yet: the version matrix holds no manifest of it",
			Advice: "name its chart or manifest in source",
		}
		if a.Form() == manifest.Chart {
			p.Message = a.Name + " cannot be installed as a chart: the version matrix holds none of it"
		}
		ps = append(ps, p)
	}
	return ps
}
