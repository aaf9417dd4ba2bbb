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
	"github.com/mensylisir/kubexm/manifest/refusal"
)

// RefusedBy names what a config asks for and a pipeline cannot carry out: better before
// the first host is reached than half way. l is the lock of the bundle, which knows the
// manifests of add-ons; nil where there is none. What brings nothing takes away what was
// installed, whatever else the config asks for.
func RefusedBy(p plan.Pipeline, c *manifest.Cluster, l *manifest.Lock) manifest.Problems {
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

// CarriedOnly warns of add-ons where a bundle is made: it can carry their images, and
// on the site nothing can be fetched any more.
func CarriedOnly(c *manifest.Cluster, l *manifest.Lock) manifest.Problems {
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

// Plans gives the plan of every request for a config.
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

// Complete proves that l holds all that the plans of c need; a *plan.LackError says what
// is lacking. A config that cannot be installed yet has no plans to ask.
func Complete(c *manifest.Cluster, l *manifest.Lock) error {
	if len(RefusedBy(pipeline.Create(), c, l)) > 0 {
		return nil
	}
	set := c.Spec.Kubernetes.Version
	if !slices.ContainsFunc(l.Sets, func(s manifest.Set) bool { return s.Name == set }) {
		var have []string
		for _, s := range l.Sets {
			have = append(have, s.Name)
		}
		return fmt.Errorf("the config asks for Kubernetes %s, the bundle holds %s", set, strings.Join(have, ", "))
	}
	gs, err := Plans(c)
	if err != nil {
		return err
	}
	var all []plan.Lack
	for _, g := range gs {
		var lack *plan.LackError
		if err := g.CheckBundle(l, set); errors.As(err, &lack) {
			all = append(all, lack.Lacks...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return &plan.LackError{Lacks: all}
}

// Lacking says that a bundle was made for another config.
func Lacking(err error) error {
	return &refusal.Error{Err: err, Kind: refusal.Content, Word: report.WordLacks, Advice: "build the bundle from this config: kubexm bundle build -f …"}
}
