package site

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/report"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

// UnsupportedBy returns the fields of a config that a pipeline does not support, so that it
// fails before the first host is contacted. l is the bundle's lock, which lists the manifests
// of add-ons; nil without a bundle. A pipeline without a bundle removes what was installed,
// whatever else the config contains.
func UnsupportedBy(p plan.Pipeline, c *manifest.Cluster, l *manifest.Lock) manifest.Problems {
	if p.UnsupportedFields != nil {
		if ps := p.UnsupportedFields(c); len(ps) > 0 {
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

// AddonWarnings returns warnings for add-ons when a bundle is built: the bundle can contain
// their images, but not their manifests, and the site cannot download these.
func AddonWarnings(c *manifest.Cluster, l *manifest.Lock) manifest.Problems {
	ps := addonsWithout(c, l)
	for i := range ps {
		ps[i].Severity = manifest.Warning
		ps[i].Message += "; the bundle contains its images"
	}
	return ps
}

// addonsWithout returns the add-ons whose manifest l does not contain: for some the version
// matrix has only images.
func addonsWithout(c *manifest.Cluster, l *manifest.Lock) manifest.Problems {
	var ps manifest.Problems
	for i, a := range c.Spec.Addons {
		need := manifest.Need{Kind: manifest.File, Name: a.Name, Set: c.Spec.Kubernetes.Version}
		if _, err := l.File(need, manifest.Platform{}); a.Source != "" || part.HasOwnManifest(a) || err == nil && a.Form() != manifest.Chart {
			continue
		}
		p := manifest.Problem{
			Path: fmt.Sprintf("spec.addons[%d]", i), Message: a.Name + " cannot be installed yet: the version matrix has no manifest for it",
			Advice: "specify its chart or manifest in source",
		}
		if a.Form() == manifest.Chart {
			p.Message = a.Name + " cannot be installed as a chart: the version matrix has no chart for it"
		}
		ps = append(ps, p)
	}
	return ps
}

// Plans returns the plan of every pipeline for a config.
func Plans(c *manifest.Cluster) ([]*plan.Graph, error) {
	var out []*plan.Graph
	for _, p := range pipeline.All() {
		g, err := plan.Build(p, plan.Scope{Want: c, Set: c.Spec.Kubernetes.Version})
		if err != nil {
			return nil, err
		}
		out = append(out, g)
	}
	return out, nil
}

// Complete checks that l contains everything that the plans of c need. A
// *plan.MissingArtifactsError lists what is missing. A config that cannot be installed yet has
// no plans to check.
func Complete(c *manifest.Cluster, l *manifest.Lock) error {
	if len(UnsupportedBy(pipeline.Create(), c, l)) > 0 {
		return nil
	}
	set := c.Spec.Kubernetes.Version
	if !slices.ContainsFunc(l.Sets, func(s manifest.Set) bool { return s.Name == set }) {
		var have []string
		for _, s := range l.Sets {
			have = append(have, s.Name)
		}
		return fmt.Errorf("the config requires Kubernetes %s, the bundle contains %s", set, strings.Join(have, ", "))
	}
	gs, err := Plans(c)
	if err != nil {
		return err
	}
	var all []plan.MissingArtifact
	for _, g := range gs {
		var lack *plan.MissingArtifactsError
		if err := g.CheckBundle(l, set); errors.As(err, &lack) {
			all = append(all, lack.Artifacts...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return &plan.MissingArtifactsError{Artifacts: all}
}

// WrapMismatch wraps the error of a bundle that was built for another config.
func WrapMismatch(err error) error {
	return &refusal.Error{Err: err, Kind: refusal.Content, Code: report.CodeConfigMismatch, Advice: "build the bundle from this config: kubexm bundle build -f …"}
}
